import Base
import Testing

@testable import Storage

@Suite("The events that make a notice")
struct ChangedConnectionTests {
    /// The states that show as connected, so that a change between them makes no notice.
    private static let connected: Set<GrantState?> = [.active, .retrying]

    @Test("Every change but a first connection, an unchanged state and a passing retry", arguments: GrantState.allCases)
    func moves(to next: GrantState) {
        for former in [nil] + GrantState.allCases.map(Optional.some) {
            let event = GrantEvent(
                grant: GrantID(rawValue: 1),
                at: start,
                kind: .state,
                from: former,
                to: next,
                reason: .none,
                generation: 1
            )
            let isSilent = former == nil || former == next || Self.connected.isSuperset(of: [former, next])
            #expect(event.changesConnection == !isSilent, "\(String(describing: former)) -> \(next)")
        }
    }
}
