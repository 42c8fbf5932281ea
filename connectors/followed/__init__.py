"""Files that appear while the job runs."""
