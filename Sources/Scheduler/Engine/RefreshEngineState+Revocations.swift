import Base
import Storage

/// Revocations wait for refreshes: an endpoint for revocations that hangs must not take their slots.
extension RefreshEngineState {
    /// The number of revocations that can be sent beside those in flight.
    var freeRevocationSlots: Int {
        max(0, max(1, maximumInFlight / 4) - slots.values.count { $0.refresh?.isRevocation ?? false })
    }

    /// Removes and returns the deferred revocations of a client that can go now, or else the wait if one is known.
    ///
    /// They are sent only while no refresh of the client can be sent.
    mutating func takeRevocations(of client: String, at instant: BootInstant) -> (ids: [GrantID], wait: Duration?) {
        guard gates[client]?.deferredRevocations.isEmpty == false else { return ([], nil) }
        let shared = sharedInstant(at: instant)
        let free = min(freeRevocationSlots, maximumInFlight - slots.count)
        var ids: [GrantID] = []
        // The lease of one that has a slot is being released. Its end wakes the loop.
        while ids.count < free, let key = gates[client]?.deferredRevocations.first?.key,
            slots[GrantID(rawValue: key)] == nil
        {
            guard gates[client]?.pacer.take(upTo: 1, at: shared) == 1 else {
                return (ids, gates[client]?.pacer.nextAvailable(at: shared))
            }
            gates[client]?.deferredRevocations.remove(key)
            ids.append(GrantID(rawValue: key))
        }
        return (ids, nil)
    }
}
