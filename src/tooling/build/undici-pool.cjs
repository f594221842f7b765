// Replaces the package `undici`, because the program needs only its pool. The rest would be a large part of the code
// that each start loads.
module.exports.Pool = require('undici/lib/dispatcher/pool.js')
