"""Problems to train on and to evaluate on."""
