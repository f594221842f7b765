/** Returns the number of cases for a property test. `RUNS` allows a longer search than the `usual` one. */
export const runs = (usual: number): number => Number(process.env['RUNS'] ?? usual)
