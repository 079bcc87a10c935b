package import Store

/// What became of one finding once it is durable.
package struct Settled: Sendable {
    package var finding: Finding
    package var ruling: Ruling
    /// The grant as stored; `nil` when it has been deleted meanwhile.
    package var grant: Grant?
    package var health: ClientHealth
    /// Events of other grants that were called back because of this finding.
    package var recalled: [GrantEvent] = []
}
