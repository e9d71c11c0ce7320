"""What is to be done for a job: pure functions of the job, its status and its pods."""
