import fc from 'fast-check'

// Property tests draw the same cases in every run, so that a change is judged by what it changes and not by luck. To
// look for new cases, give another seed: `PROPERTY_SEED=$RANDOM npx vitest run packages`. A seed that
// fails is worth an example in the test that it failed.
const FIXED_SEED = 20_261_115

fc.configureGlobal({ seed: Number(process.env['PROPERTY_SEED'] ?? FIXED_SEED) })
