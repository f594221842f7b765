// Stands in for the package `undici`, of which the program needs the pool only. All of it, with its own `fetch`, WebSockets
// and mocks, is a good part of what a start loads.
module.exports.Pool = require('undici/lib/dispatcher/pool.js')
