/** Planted bug: an update for an unknown app creates the app. */
import { AppManager } from '../../../src/hub/app-manager.ts'

const { receive } = AppManager.prototype
AppManager.prototype.receive = function (event) {
  receive.call(this, event.type === 'update' ? { ...event, type: 'create' } : event)
}
