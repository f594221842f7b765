/** A bug on purpose: the configuration is logged as it is, and nothing is masked. */

import { Hub } from '../../../src/hub/hub.ts'
import { Scrubber } from '../../../src/observability/scrub.ts'

Scrubber.prototype.line = (line) => line
const { start } = Hub.prototype
Hub.prototype.start = function () {
  console.log(JSON.stringify({ level: 'info', msg: 'starting', env: process.env }))
  start.call(this)
}
