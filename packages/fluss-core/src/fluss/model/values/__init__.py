"""Values: from what users write to the physical values that codecs store, and back."""
