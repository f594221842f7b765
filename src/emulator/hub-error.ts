/** A refusal by the hub, over HTTP or the realtime channel. */
export class HubError extends Error {
  override readonly name = 'HubError'
  readonly status: number
  readonly error: string

  constructor(status: number, error: string, description: string) {
    super(description)
    this.status = status
    this.error = error
  }

  body(): { error: string; error_description: string } {
    return { error: this.error, error_description: this.message }
  }
}

/** Turns a bug in the emulator into the hub's status 500, so that the hub does not crash. */
export function asHubError(thrown: unknown): HubError {
  if (thrown instanceof HubError) return thrown
  return new HubError(500, 'internal_error', messageOf(thrown))
}

export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))
