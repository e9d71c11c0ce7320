"""The Service proxy as a program of Sublet's: `embedded.proxy` fed by the shared informers."""
