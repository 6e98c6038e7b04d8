"""What makes the documentation: generated pages, the site, and the pictures of both."""
