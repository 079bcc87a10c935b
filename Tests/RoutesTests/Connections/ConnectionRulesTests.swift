import Crypto
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Routes

/// The stored grant when an app sends tokens of Jane's account, `g-1`.
private struct Case: CustomTestStringConvertible, Sendable {
    var id: String?
    var email: String?
    var hasRefreshToken = true
    var isDead = false
    var endedByUser = false
    var lookup = ConnectionRules.OwnerLookup.notAsked
    /// `nil` if the owner must be looked up.
    var expected: ConnectionRules.Decision?

    var testDescription: String {
        "id \(id ?? "none"), e-mail \(email ?? "none"), token \(hasRefreshToken), dead \(isDead), \(lookup)"
    }
}

private func switched(from name: String) -> ConnectionRules.Decision {
    .init(relation: .switched(from: name, to: "Jane@gmail.com"), keepsStored: false)
}

private let same = ConnectionRules.Decision(relation: .same, keepsStored: true)
private let sameWithoutStored = ConnectionRules.Decision(relation: .same, keepsStored: false)

@Suite("The decision about a connection")
struct ConnectionRulesTests {
    private static let incoming = Grant.Owner(googleUserID: "g-1", email: "Jane@gmail.com")

    @Test("without a stored grant it is a first connection")
    func first() {
        let decision = ConnectionRules.decide(stored: nil, incoming: Self.incoming)
        #expect(decision == .init(relation: .first, keepsStored: false))
    }

    @Test(
        "it depends on the stored owner",
        arguments: [
            Case(id: "g-1", email: "jane@gmail.com", expected: same),
            Case(id: "g-1", email: "renamed@gmail.com", expected: same),
            Case(id: "g-1", email: nil, expected: same),
            Case(id: "g-2", email: "john@gmail.com", expected: switched(from: "john@gmail.com")),
            // The account was deleted, and another one got its address.
            Case(
                id: "g-2",
                email: "jane@gmail.com",
                expected: .init(
                    relation: .switched(from: "jane@gmail.com (g-2)", to: "Jane@gmail.com (g-1)"),
                    keepsStored: false
                )
            ),
            Case(id: "g-2", email: nil, expected: switched(from: "g-2")),
            Case(id: nil, email: "JANE@GMAIL.COM", expected: same),
            Case(id: "", email: "jane@gmail.com", expected: same),
            Case(id: nil, email: "john@gmail.com", expected: switched(from: "john@gmail.com")),
            Case(id: "", email: "john@gmail.com", expected: switched(from: "john@gmail.com")),
            Case(id: nil, email: nil, expected: nil),
            Case(id: "", email: "", expected: nil),
            Case(id: nil, email: nil, hasRefreshToken: false, expected: sameWithoutStored),
            Case(id: nil, email: nil, isDead: true, expected: sameWithoutStored),
            Case(id: nil, email: nil, lookup: .found(.init(googleUserID: "g-1")), expected: same),
            Case(
                id: nil,
                email: nil,
                lookup: .found(.init(googleUserID: "g-2", email: "john@gmail.com")),
                expected: switched(from: "john@gmail.com")
            ),
            Case(id: nil, email: nil, lookup: .unknown, expected: sameWithoutStored),
            Case(id: "g-1", email: nil, isDead: true, expected: same),
            Case(id: "g-2", email: nil, isDead: true, expected: switched(from: "g-2")),
            Case(id: "g-1", email: nil, isDead: true, endedByUser: true, expected: sameWithoutStored),
        ]
    )
    private func storedOwner(_ example: Case) throws {
        let now = ManualTime().now
        let sealed = try SealedSecret.sample()
        var (grant, _) = Grant.connected(
            id: GrantID(rawValue: 1),
            userID: "42",
            incoming: IncomingTokens(
                clientID: FakeGoogle.clientID,
                owner: Grant.Owner(googleUserID: example.id, email: example.email),
                refreshToken: example.hasRefreshToken ? Grant.RefreshToken(sealed: sealed) : nil
            ),
            dueAt: now,
            at: now
        )
        if example.endedByUser {
            _ = grant.disconnectByRequest(revokes: true, at: now)
        } else if example.isDead {
            _ = grant.disconnect(reason: .invalidGrant, at: now)
        }
        #expect(
            ConnectionRules.decide(stored: grant, lookup: example.lookup, incoming: Self.incoming)
                == example.expected
        )
    }

    @Test("the app gets a message about the decision")
    func messages() {
        #expect(ConnectionRules.Relation.first.payPulseMessage == "First Gmail connection")
        #expect(ConnectionRules.Relation.same.payPulseMessage == "Same Google account or first connection")
        #expect(ConnectionRules.Relation.switched(from: "a", to: "b").payPulseMessage == "Switching from a to b")
        #expect(ConnectionRules.Relation.switched(from: "a", to: "b").isSwitch)
        #expect(!ConnectionRules.Relation.same.isSwitch && !ConnectionRules.Relation.first.isSwitch)
    }
}

extension SealedSecret {
    /// Returns a value in the form of a sealed one.
    fileprivate static func sample() throws -> SealedSecret {
        try SealedSecret(bytes: [2, 8] + Array("0a1b2c3d".utf8) + [UInt8](repeating: 7, count: 28))
    }
}
