import Base
import Storage

/// The slot of one refresh in flight, from just before its claim until its result is committed.
struct InFlightSlot: Sendable {
    /// Signals the end of the refresh to all callers that wait for it.
    let completion = CompletionSignal()
    /// The refresh, or `nil` until the grant is claimed.
    var refresh: Refresh?
}
