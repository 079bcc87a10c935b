import Base
import Storage
import Testing

@testable import Scheduler

/// Where tokens go among the connections of one user.
@Suite("The target of new tokens")
struct ConnectionTargetTests {
    private static let work = ConnectionID("work") ?? .default

    /// Returns a grant that has ended with this reason, or a connected one.
    private func grant(
        _ number: Int64,
        _ connection: ConnectionID?,
        account: String? = nil,
        reason: GrantReason = .none
    ) throws -> Grant {
        let connection = try #require(connection ?? ConnectionID("c\(number)"))
        var grant = Grant.connected(
            id: GrantID(rawValue: number),
            userID: "42",
            connection: connection,
            incoming: IncomingTokens(clientID: "client", owner: Grant.Owner(googleUserID: account)),
            dueAt: nil,
            at: start
        ).grant
        if reason != .none { grant.restore(state: .disconnected, reason: reason, since: start) }
        return grant
    }

    /// Returns the connection, `new`, or the error, for tokens of the account g-1.
    private func resolve(_ target: ConnectionTarget, among grants: [Grant], limit: Int = 20) -> String {
        do {
            switch try target.resolve(among: grants, account: Grant.Owner(googleUserID: "g-1"), limit: limit) {
            case .stored(let grant): return grant.connection.description
            case .missing(let id): return id?.description ?? "new"
            }
        } catch {
            return "\(error)"
        }
    }

    @Test("is refused for the 201st connection, whatever the reasons of the others")
    func maximumRows() throws {
        var grants = [try grant(1, .default)]
        for number in 2...199 { grants.append(try grant(Int64(number), nil, reason: .userRequest)) }
        #expect(resolve(.new, among: grants) == "new")
        grants.append(try grant(200, nil, account: "g-2", reason: .accountMoved))
        #expect(resolve(.new, among: grants) == "tooManyConnections(limit: 200)")
        grants[199] = try grant(200, nil, account: "g-1", reason: .userRequest)
        #expect(resolve(.new, among: grants) == "c200", "it exists")
    }

    @Test(
        "counts connections that the user has not ended",
        arguments: [
            (.none, true), (.invalidGrant, true), (.tokenRevoked, true), (.accountDisabled, true),
            (.userRequest, false), (.accountMoved, false), (.forgotten, false),
        ] as [(GrantReason, Bool)]
    )
    func counted(reason: GrantReason, counts: Bool) throws {
        let grants = [try grant(1, .default), try grant(2, Self.work, account: "g-2", reason: reason)]
        #expect(resolve(.new, among: grants, limit: 2) == (counts ? "tooManyConnections(limit: 2)" : "new"))
    }

    @Test("counts one that the user has ended when it is connected again")
    func revived() throws {
        let others = [try grant(1, .default), try grant(3, nil)]
        let ended = others + [try grant(2, Self.work, account: "g-1", reason: .userRequest)]
        let refused = others + [try grant(2, Self.work, account: "g-1", reason: .invalidGrant)]
        for target in [ConnectionTarget.new, .named(Self.work)] {
            #expect(resolve(target, among: ended, limit: 2) == "tooManyConnections(limit: 2)")
            #expect(resolve(target, among: ended, limit: 3) == "work")
            #expect(resolve(target, among: refused, limit: 2) == "work", "it counts already")
        }
    }

    @Test("is never refused for the default connection, which old apps know alone")
    func endedDefault() throws {
        let grants = [try grant(1, .default, account: "g-1", reason: .userRequest), try grant(2, Self.work)]
        let targets: [ConnectionTarget] = [
            .default(maySwitch: true), .default(maySwitch: false), .named(.default), .new,
        ]
        for target in targets { #expect(resolve(target, among: grants, limit: 1) == "default") }
    }
}
