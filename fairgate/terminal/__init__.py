"""What commands share: options, progress, and what is printed."""
