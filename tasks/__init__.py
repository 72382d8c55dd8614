"""Core work made durable: Prefect tasks around the stages, and what a watcher sees of them."""
