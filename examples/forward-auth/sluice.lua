-- Asks the service about a request. If the service does not answer within 100 ms, the request goes on.
local URL = 'http://127.0.0.1:8080/internal/ratelimit/forward-auth'

core.register_action('sluice_check', { 'http-req' }, function(txn)
  local client = core.httpclient()
  local response = client:get({
    url = URL,
    timeout = 100,
    headers = {
      ['x-forwarded-uri'] = { txn.sf:path() },
      ['x-forwarded-method'] = { txn.sf:method() },
      ['x-forwarded-for'] = { txn.sf:src() },
    },
  })
  if response == nil or response.headers == nil then return end
  local function pass(header, variable)
    local values = response.headers[header]
    if values ~= nil then txn:set_var('txn.' .. variable, values[0]) end
  end
  pass('x-ratelimit-limit', 'sluice_limit')
  pass('x-ratelimit-remaining', 'sluice_remaining')
  pass('retry-after', 'sluice_retry_after')
  txn:set_var('txn.sluice_denied', response.status == 429)
end, 0)
