/** A bug on purpose: an update tells of an app, known or not. */
import { AppManager } from '../../../src/hub/app-manager.ts'

const { receive } = AppManager.prototype
AppManager.prototype.receive = function (event) {
  receive.call(this, event.type === 'update' ? { ...event, type: 'create' } : event)
}
