"""How asking a model fails. None of it says anything about a candidate, nor about replies kept before.

| what happened | raised by the client | what follows |
|---|---|---|
| a try failed: 429, 5xx, no connection, no answer, no JSON | nothing | asked again, within the limit |
| all tries of one request failed | `NoReplyError` | the others go on, then the command fails |
| the endpoint refuses this request, such as a too long one | `RequestRefusedError` | the candidate is lost |
| no or wrong key, address, model or package | `EndpointSettingsError` | stop until the user changes it |
| quota used up, nothing but failures | `EndpointError` | stop |
| the limit of costs is reached | `CostLimitError` | no new requests |
"""


class NoReplyError(Exception):
    """A request got no reply within its limit."""


class RequestRefusedError(Exception):
    """The endpoint refuses this very request."""


class EndpointError(Exception):
    """Asking on is useless for now; the text is one line and says what to do."""


class EndpointSettingsError(EndpointError):
    """Asking is useless until the user sets another address, key, model or field, or installs a package."""


class CostLimitError(Exception):
    """Asking on would cost more than the user allows."""
