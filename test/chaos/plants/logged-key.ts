/** Planted bug: the configuration is logged without masking. */

import { Hub } from '../../../src/hub/hub.ts'
import { Scrubber } from '../../../src/observability/scrub.ts'

Scrubber.prototype.line = (line) => line
const { start } = Hub.prototype
Hub.prototype.start = function () {
  console.log(JSON.stringify({ level: 'info', msg: 'starting', env: process.env }))
  start.call(this)
}
