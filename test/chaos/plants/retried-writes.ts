/** Planted bug: requests without an answer are repeated, including writes, and without the checks before sending. */
import { HubError } from '../../../src/hub/errors.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (method, path, sending) {
  try {
    return await request.call(this, method, path, sending)
  } catch (error) {
    if (!(error instanceof HubError && error.code === 'no_answer')) throw error
    // After a lost connection, the hub's identity is unconfirmed, so `mayLeave` would prevent the repetition.
    return await request.call(this, method, path, { ...sending, mayLeave: undefined })
  }
}
