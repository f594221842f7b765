// Replaces the package `debug`, because libraries check for every packet whether `debug` is enabled, which costs CPU
// time. If `debug` were enabled, the MQTT library would print passwords.
const silent = Object.assign(() => {}, { enabled: false, extend: () => silent })

const debug = () => silent
// Libraries import the package in each of these forms.
module.exports = Object.assign(debug, { debug, default: debug })
