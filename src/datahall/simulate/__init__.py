"""Watch it happen: questions that are answered by playing events, not by a closed form."""
