"""Many points of one question: each is asked as it would be alone, and the best is put first."""
