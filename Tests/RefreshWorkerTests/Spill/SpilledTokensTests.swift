import Crypto
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker
@testable import Scheduler
@testable import Storage

@Suite("Tokens of codes in a spill file", .timeLimit(.minutes(10)))
struct SpilledTokensTests {
    private static let work = ConnectionID("work") ?? .default

    private func tokens(
        of user: String,
        _ name: String,
        for target: ConnectionTarget = .default(maySwitch: true),
        boundTo bindingKeyID: KeyID? = nil,
        at now: Timestamp
    ) -> ExchangedTokens {
        ExchangedTokens(
            userID: user,
            target: target,
            clientID: "1-server",
            owner: Grant.Owner(googleUserID: "g-1", email: "jane@gmail.com", name: "Jane \"J\"", emailIsVerified: true),
            scope: "openid gmail",
            accessToken: Secret("ya29.\(name)"),
            accessTokenExpiresAt: now + .seconds(3599),
            isExchanged: true,
            refreshToken: Secret("1//\(name)"),
            bindingKeyID: bindingKeyID,
            refreshTokenExpiresAt: now + .seconds(604_800),
            refreshTokenTimeout: .seconds(600),
            receivedAt: now
        )
    }

    /// Runs the body with a key ring and an empty database.
    private func with(_ body: (OperatorFixture, CommandContext, TokenVault) async throws -> Void) async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            await (try fixture.openStore()).close()
            try await body(fixture, try fixture.context(), try fixture.openVault())
        }
    }

    private func spill(
        _ list: [ExchangedTokens],
        _ fixture: OperatorFixture,
        _ context: CommandContext,
        _ vault: TokenVault
    ) async throws {
        try await fixture.openSpill(context, vault: vault).save(list)
        _ = try await context.run(["status", "--json"])
    }

    /// Saves tokens in a file that no process uses any more.
    private func path(
        of tokens: ExchangedTokens,
        _ fixture: OperatorFixture,
        _ context: CommandContext,
        _ vault: TokenVault
    ) async throws -> String {
        let spill = try await fixture.openSpill(context, vault: vault)
        try await spill.save([tokens])
        return try #require(spill.path)
    }

    /// Stores a connection that has this account.
    private func connect(
        _ connection: ConnectionID,
        account: String,
        at now: Timestamp,
        _ fixture: OperatorFixture,
        _ vault: TokenVault
    ) async throws {
        let store = try fixture.openStore()
        let id = GrantID(rawValue: connection.isDefault ? 7 : 8)
        let new = NewConnection(id: id, userID: "42", connection: connection)
        var incoming = IncomingTokens(clientID: "1-server", owner: Grant.Owner(googleUserID: account))
        incoming.refreshToken = try vault.seal(refreshToken: Secret("1//\(connection)"), for: id)
        _ = try await store.transact { [incoming] in
            try $0.connect(incoming, as: new, changing: nil, by: nil, at: now)
        }
        await store.close()
    }

    private func grant(of user: String, _ fixture: OperatorFixture) async throws -> Grant? {
        let store = try fixture.openStore()
        let grant = try await store.grant(ofUser: user)
        await store.close()
        return grant
    }

    @Test(
        "keep every value",
        arguments: [.default(maySwitch: true), .default(maySwitch: false), .new, .named(work)] as [ConnectionTarget]
    )
    func roundTrip(target: ConnectionTarget) async throws {
        try await with { fixture, _, vault in
            let saved = tokens(of: "42", "jane", for: target, at: fixture.time.now)
            let read = try #require(try ExchangedTokens.open(try saved.spilled(with: vault), with: vault))
            #expect(read.target == target)
            #expect(read.userID == "42" && read.clientID == "1-server" && read.owner == saved.owner)
            #expect(read.scope == "openid gmail" && read.isExchanged)
            #expect(read.accessToken == saved.accessToken && read.refreshToken == saved.refreshToken)
            #expect(read.accessTokenExpiresAt == saved.accessTokenExpiresAt)
            #expect(read.refreshTokenExpiresAt == saved.refreshTokenExpiresAt)
            #expect(read.refreshTokenTimeout == .seconds(600))
            #expect(read.receivedAt == saved.receivedAt)
        }
    }

    @Test("keep the key that the refresh token is bound to, and are refused if it is no id")
    func bindingKey() async throws {
        let key = try #require(KeyID("0000000b"))
        try await with { fixture, _, vault in
            let bound = try tokens(of: "42", "jane", boundTo: key, at: fixture.time.now).spilled(with: vault)
            #expect(try ExchangedTokens.open(bound, with: vault)?.bindingKeyID == key)
            let text = try vault.open(spilledResult: bound).reveal()
            for value in [#""0000000x""#, "11"] {
                let damaged = text.replacing(#""0000000b""#, with: value)
                let sealed = try vault.seal(spilledResult: Secret(damaged))
                #expect(throws: FileError.self) { try ExchangedTokens.open(sealed, with: vault) }
            }
        }
    }

    @Test("become the grant of their user at the next start, once")
    func recovered() async throws {
        try await with { fixture, context, vault in
            let list = [tokens(of: "42", "jane", at: fixture.time.now)]
            try await spill(list, fixture, context, vault)
            let first = try #require(try await grant(of: "42", fixture))
            #expect(try vault.openRefreshToken(of: first)?.reveal() == "1//jane")
            #expect(first.clientID == "1-server" && first.state == .active)
            #expect(first.dueAt == fixture.time.now + .seconds(300), "the refresh token must be used by then")
            #expect(first.issuedTokens.contains(IssuedTokens.digest(of: Secret("ya29.jane"))))
            #expect(try fixture.names.filter { $0.contains("unsaved") || $0.contains("set-aside") } == [])
            try await spill(list, fixture, context, vault)
            #expect(try await grant(of: "42", fixture) == first)
        }
    }

    @Test("stay in a file of another database, unless an operator says that it had the same users")
    func ofAnotherDatabase() async throws {
        try await with { fixture, context, vault in
            let path = try await path(of: tokens(of: "42", "jane", at: fixture.time.now), fixture, context, vault)
            let other = try SpillFileTests.assign(path, to: .random(from: SystemRandom()))
            let error = await #expect(throws: CommandError.self) {
                try await context.run(["results", "recover", path])
            }
            #expect(error?.message.contains("run the command again with --of-database \(other)") == true)
            let wrong = DatabaseID.random(from: SystemRandom()).description
            await #expect(throws: CommandError.self) {
                try await context.run(["results", "recover", path, "--of-database", wrong])
            }
            #expect(try await grant(of: "42", fixture) == nil)
            let code = try await context.run(["results", "recover", path, "--of-database", other.description])
            #expect(code == .success)
            let stored = try #require(try await grant(of: "42", fixture))
            #expect(try vault.openRefreshToken(of: stored)?.reveal() == "1//jane")
        }
    }

    @Test("are set aside if they contradict the data, and those of other users are stored")
    func contradicting() async throws {
        try await with { fixture, context, vault in
            let now = fixture.time.now
            try await connect(.default, account: "g-2", at: now, fixture, vault)
            try await connect(Self.work, account: "g-1", at: now, fixture, vault)
            let store = try fixture.openStore()
            // A row that no statement of this program writes: a connection that has left its account, and has it still.
            try await store.transact { transaction in
                var grant = try #require(try transaction.grant(GrantID(rawValue: 8)))
                let owner = grant.owner
                _ = grant.leaveAccount(at: now)
                grant.owner = owner
                try transaction.update(grant)
            }
            await store.close()
            let later = now + .seconds(60)
            let list = [tokens(of: "42", "jane", at: later), tokens(of: "43", "joe", at: later)]
            try await spill(list, fixture, context, vault)
            let joe = try #require(try await grant(of: "43", fixture))
            #expect(try vault.openRefreshToken(of: joe)?.reveal() == "1//joe")
            #expect(try fixture.names.contains { $0.contains("set-aside") })
        }
    }

    @Test("replace an older grant of the user, and not a newer one or one that the user has ended since")
    func outdated() async throws {
        try await with { fixture, context, vault in
            let now = fixture.time.now
            try await spill([tokens(of: "42", "first", at: now)], fixture, context, vault)
            try await spill([tokens(of: "42", "second", at: now + .seconds(1_000_000_000))], fixture, context, vault)
            let second = try #require(try await grant(of: "42", fixture))
            #expect(try vault.openRefreshToken(of: second)?.reveal() == "1//second")
            #expect(second.generation == 2)
            try await spill([tokens(of: "42", "third", at: now + .seconds(-1))], fixture, context, vault)
            #expect(try await grant(of: "42", fixture) == second)
            let store = try fixture.openStore()
            let later = now + .seconds(2_000_000_000)
            try await store.transact { transaction in
                guard let grant = try transaction.grant(ofUser: "42") else { return }
                _ = try GrantDisconnection.end(grant, reason: .userRequest, in: transaction, at: later)
            }
            await store.close()
            try await spill([tokens(of: "42", "fourth", at: now + .seconds(1_500_000_000))], fixture, context, vault)
            #expect(try await grant(of: "42", fixture)?.state == .disconnected)
        }
    }

    @Test("are stored although the user has connected since without a refresh token")
    func connectedWithoutRefreshToken() async throws {
        try await with { fixture, context, vault in
            let now = fixture.time.now
            let store = try fixture.openStore()
            let new = NewConnection(id: GrantID(rawValue: 7), userID: "42", connection: .default)
            let owner = Grant.Owner(googleUserID: "g-1", email: "jane@gmail.com")
            let incoming = IncomingTokens(clientID: "1-server", owner: owner)
            _ = try await store.transact {
                try $0.connect(incoming, as: new, changing: nil, by: nil, at: now + .seconds(60))
            }
            await store.close()
            try await spill([tokens(of: "42", "jane", at: now)], fixture, context, vault)
            let grant = try #require(try await grant(of: "42", fixture))
            #expect(try vault.openRefreshToken(of: grant)?.reveal() == "1//jane")
        }
    }

    @Test("are dropped if the user has ended since a grant that was disconnected already")
    func endedAgain() async throws {
        try await with { fixture, context, vault in
            let now = fixture.time.now
            try await spill([tokens(of: "42", "first", at: now)], fixture, context, vault)
            let store = try fixture.openStore()
            for (reason, at) in [(GrantReason.invalidGrant, 10), (.userRequest, 30)] {
                try await store.transact { transaction in
                    guard var grant = try transaction.grant(ofUser: "42") else { return }
                    if reason == .userRequest {
                        _ = try GrantDisconnection.end(grant, reason: reason, in: transaction, at: now + .seconds(at))
                    } else {
                        _ = grant.disconnect(reason: reason, at: now + .seconds(at))
                        try transaction.update(grant)
                    }
                }
            }
            await store.close()
            try await spill([tokens(of: "42", "second", at: now + .seconds(20))], fixture, context, vault)
            #expect(try await grant(of: "42", fixture)?.state == .disconnected)
        }
    }

    @Test("are dropped if the account has become another connection since", arguments: [60, -60] as [Int64])
    func connectedOtherwise(seconds: Int64) async throws {
        try await with { fixture, context, vault in
            let now = fixture.time.now
            let store = try fixture.openStore()
            let owner = Grant.Owner(googleUserID: "g-1", email: "jane@gmail.com")
            let new = NewConnection(id: GrantID(rawValue: 7), userID: "42", connection: Self.work)
            var incoming = IncomingTokens(clientID: "1-server", owner: owner)
            incoming.refreshToken = try vault.seal(refreshToken: Secret("1//work"), for: new.id)
            _ = try await store.transact { [incoming] in
                try $0.connect(incoming, as: new, changing: nil, by: nil, at: now + .seconds(seconds))
            }
            await store.close()
            try await spill([tokens(of: "42", "jane", at: now)], fixture, context, vault)
            let isDropped = seconds > 0
            #expect((try await grant(of: "42", fixture) == nil) == isDropped)
            let after = try fixture.openStore()
            let other = try await after.grant(ofUser: "42", connection: Self.work)
            await after.close()
            #expect(other?.reason == (isDropped ? GrantReason.none : .accountMoved))
        }
    }

    @Test(
        "go to the connection that they are for, and to none that has another account",
        arguments: [
            // The account of the tokens is g-1. The default connection has g-2 and the other one g-3, or none.
            (.default(maySwitch: true), "g-3", ["default 1//jane", "work 1//work"]),
            (.default(maySwitch: false), "g-3", ["default 1//default", "work 1//work"]),
            (.named(.default), "g-3", ["default 1//default", "work 1//work"]),
            (.named(work), "g-3", ["default 1//default", "work 1//work"]),
            (.named(work), "g-1", ["default 1//default", "work 1//jane"]),
            (.named(work), nil, ["default 1//default"]),
            (.new, "g-1", ["default 1//default", "work 1//jane"]),
            (.new, nil, ["default 1//default", "new 1//jane"]),
        ] as [(ConnectionTarget, String?, [String])]
    )
    func targets(target: ConnectionTarget, otherAccount: String?, expected: [String]) async throws {
        try await with { fixture, context, vault in
            let now = fixture.time.now
            try await connect(.default, account: "g-2", at: now - .seconds(60), fixture, vault)
            if let otherAccount {
                try await connect(Self.work, account: otherAccount, at: now - .seconds(60), fixture, vault)
            }
            try await spill([tokens(of: "42", "jane", for: target, at: now)], fixture, context, vault)
            let store = try fixture.openStore()
            let grants = try await store.grants(ofUser: "42")
            await store.close()
            let stored = try grants.map { grant in
                let isKnown = grant.connection.isDefault || grant.connection == Self.work
                let token = try vault.openRefreshToken(of: grant)?.reveal() ?? "-"
                return "\(isKnown ? grant.connection.description : "new") \(token)"
            }
            #expect(stored == expected)
            #expect(try fixture.names.filter { $0.contains("unsaved") || $0.contains("set-aside") } == [])
        }
    }

    @Test("of one user leave the newest", arguments: [false, true])
    func severalOfOneUser(isReversed: Bool) async throws {
        try await with { fixture, context, vault in
            let now = fixture.time.now
            let list = [1, 2, 3].map { tokens(of: "42", "\($0)", at: now + .seconds($0 - 10)) }
            try await spill(isReversed ? list.reversed() : list, fixture, context, vault)
            let grant = try #require(try await grant(of: "42", fixture))
            #expect(try vault.openRefreshToken(of: grant)?.reveal() == "1//3")
        }
    }
}
