// Replaces the package `undici`, of which the program needs only the pool. The rest, with `fetch`, WebSockets and mocks,
// would be a large part of the code that each start loads.
module.exports.Pool = require('undici/lib/dispatcher/pool.js')
