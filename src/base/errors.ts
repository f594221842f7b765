/** A failure that is not a bug. Its message contains everything that the user needs, so no stack is printed. */
export class ExpectedError extends Error {}

/** An error in a command line or configuration. Ends the process with exit code 2. */
export class UsageError extends ExpectedError {
  override readonly name: string = 'UsageError'
}
