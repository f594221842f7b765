/** Planted bug: requests without an answer are repeated, including writes. */
import { HubError } from '../../../src/hub/errors.ts'
import { HttpClient } from '../../../src/hub/http-client.ts'

const { request } = HttpClient.prototype
HttpClient.prototype.request = async function (...args) {
  try {
    return await request.apply(this, args)
  } catch (error) {
    if (error instanceof HubError && error.code === 'no_answer') return await request.apply(this, args)
    throw error
  }
}
