"""Programs that build and check the repository; nothing in packages/ imports them."""
