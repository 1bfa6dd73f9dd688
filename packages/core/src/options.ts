// Option checks and durations, and nothing else of the core: the client of a service does not load a limiter for them.
export { type ErrorDetails, isSluiceError, SluiceError, urlWithoutSecrets } from './errors.ts'
export { checkOptionNames, checkSignal, type OptionTaker } from './options/known-options.ts'
export { nearestName, numberAdvice } from './options/option-advice.ts'
export {
  ANY,
  COST,
  can,
  checkForms,
  FLAG,
  FUNCTION,
  isWhole,
  OBJECT,
  type OptionForm,
  type OptionForms,
} from './options/option-form.ts'
export { parseDurationMs } from './rule/duration.ts'
