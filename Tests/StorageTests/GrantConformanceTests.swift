import Base
import Crypto
import TestSupport
import Testing

@testable import Storage

@Suite("Every store keeps grants", .timeLimit(.minutes(10)))
struct GrantConformanceTests {
    @Test("A stored grant is read back completely", arguments: StoreKind.allCases)
    func roundTrip(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var full = try Sample.fullGrant(.max, userID: "Ünïcode \0 user")
            let bare = try Sample.grant(1, refreshToken: nil, accessToken: nil)
            try await store.add([full, bare])
            #expect(try await store.grant(full.id) == full)
            #expect(try await store.grant(ofUser: full.userID) == full)
            #expect(try await store.grant(bare.id) == bare)

            full.recordRotation(by: 17)
            full.owner.email = nil
            full.owner.emailIsVerified = nil
            full.clientID = "another"
            full.setLease(nil)
            let changed = full
            try await store.transact { try $0.update(changed) }
            #expect(try await store.grant(full.id) == changed)
        }
    }

    @Test("The tokens issued to an account are found by its id, else by its address", arguments: StoreKind.allCases)
    func issuedTokens(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var grants: [Grant] = []
            let owners: [Grant.Owner] = [
                .init(googleUserID: "g-1", email: "old@b.c"), .init(email: "A@b.c"),
                .init(googleUserID: "g-2", email: "a@b.c"),
                .init(), .init(googleUserID: "g-1"),
            ]
            for (number, owner) in owners.enumerated() {
                var grant = try Sample.grant(Int64(number) + 1)
                grant.owner = owner
                let token = RefreshedTokens(
                    accessToken: try Sample.accessToken(""),
                    digest: IssuedTokens.digest(of: Secret("\(number)"))
                )
                if number < 4 { _ = grant.refreshed(token, at: start) { _ in start } }
                grants.append(grant)
            }
            try await store.add(grants)
            let found = try await store.transact { transaction in
                try transaction.issuedTokens(toAccount: .init(googleUserID: "g-1", email: "a@B.c"), at: start)
            }
            let numbers = (0..<5).filter { number in
                found.contains { $0.contains(IssuedTokens.digest(of: Secret("\(number)"))) }
            }
            #expect(numbers == [0, 1])
        }
    }

    @Test(
        "The tokens issued before the owner changed are found for any account while one lives",
        arguments: StoreKind.allCases
    )
    func formerTokens(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var grant = try Sample.grant(1, owner: .init(googleUserID: "g-1"))
            let digest = IssuedTokens.digest(of: Secret("token"))
            let token = RefreshedTokens(accessToken: try Sample.accessToken(""), digest: digest)
            let end = token.accessToken.expiresAt
            _ = grant.refreshed(token, at: start) { _ in start }
            try await store.add([grant])
            try await store.change(grant.id) { grant in
                grant.reconnect(
                    IncomingTokens(clientID: "client", owner: .init(googleUserID: "g-2")),
                    replacesRefreshToken: false,
                    discardsStored: true,
                    dueAt: nil,
                    at: start
                )
            }
            for (now, isFound) in [(start, true), (end - .milliseconds(1), true), (end, false)] {
                let found = try await store.transact { transaction in
                    try transaction.issuedTokens(toAccount: .init(googleUserID: "g-1"), at: now)
                }
                #expect(found.contains { $0.contains(digest) } == isFound)
            }
        }
    }

    @Test("A grant that was never stored does not exist", arguments: StoreKind.allCases)
    func absence(kind: StoreKind) async throws {
        try await kind.withStore { store, _ async throws in
            #expect(try await store.grant(GrantID(rawValue: 5)) == nil)
            #expect(try await store.grant(ofUser: "missing") == nil)
            #expect(try await store.transact { try $0.grant(GrantID(rawValue: 5)) } == nil)
            #expect(try await store.transact { try $0.grant(ofUser: "missing") } == nil)
        }
    }

    @Test(
        "A user has one grant: a second one is a conflict, after which the body may continue",
        arguments: StoreKind.allCases
    )
    func oneGrantPerUser(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let first = try Sample.grant(1)
            let other = try Sample.grant(3)
            let second = Grant.connected(
                id: GrantID(rawValue: 2),
                userID: first.userID,
                incoming: IncomingTokens(clientID: "client"),
                dueAt: nil,
                at: start
            ).grant
            try await store.add([first])
            try await store.transact { transaction in
                let error = #expect(throws: StoreError.self) { try transaction.insert(second) }
                #expect(error?.code == .conflict)
                try transaction.insert(other)
            }
            #expect(try await store.grant(second.id) == nil)
            #expect(try await store.grant(other.id) == other)
        }
    }

    @Test("An update or an event of an unknown grant is a conflict", arguments: StoreKind.allCases)
    func unknownGrant(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let (grant, events) = Grant.connected(
                id: GrantID(rawValue: 1),
                userID: "user",
                incoming: IncomingTokens(clientID: "client"),
                dueAt: nil,
                at: start
            )
            let update = await #expect(throws: StoreError.self) { try await store.transact { try $0.update(grant) } }
            #expect(update?.code == .conflict)
            let record = await #expect(throws: StoreError.self) {
                try await store.transact { try $0.record(events[0]) }
            }
            #expect(record?.code == .conflict)
        }
    }

    @Test("A body that throws leaves nothing behind", arguments: StoreKind.allCases)
    func rollback(kind: StoreKind) async throws {
        struct Refusal: Error {}
        try await kind.withStore { store, _ in
            let kept = try Sample.grant(1)
            let lost = try Sample.grant(2)
            try await store.add([kept])
            await #expect(throws: Refusal.self) {
                try await store.transact { transaction in
                    try transaction.insert(lost)
                    var changed = kept
                    let events = changed.disconnect(reason: .invalidGrant, at: start)
                    try transaction.update(changed)
                    for event in events { try transaction.record(event) }
                    try transaction.setClientHealth([1], of: "client")
                    throw Refusal()
                }
            }
            #expect(try await store.grant(kept.id) == kept)
            #expect(try await store.grant(lost.id) == nil)
            #expect(try await store.events(of: kept.id, atMost: 10).isEmpty)
            #expect(try await store.clientHealth().isEmpty)
        }
    }

    @Test("A transaction sees its own writes", arguments: StoreKind.allCases)
    func readsOwnWrites(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let grant = try Sample.grant(1)
            try await store.transact { transaction in
                try transaction.insert(grant)
                var changed = try #require(try transaction.grant(ofUser: grant.userID))
                changed.scope = "other"
                try transaction.update(changed)
                #expect(try transaction.grant(grant.id)?.scope == "other")
                #expect(try transaction.grant(ofUser: grant.userID)?.scope == "other")
            }
        }
    }

    @Test("Pages cover all grants in the order of their ids", arguments: StoreKind.allCases)
    func pages(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.add(try Sample.grants(0...6).reversed())
            try await store.change(GrantID(rawValue: 3)) { $0.disconnect(reason: .invalidGrant, at: start) }
            try await store.change(GrantID(rawValue: 5)) { $0.disconnect(reason: .invalidGrant, at: start) }

            var seen: [Int64] = []
            var cursor: GrantID?
            while let page = Optional(try await store.grants(after: cursor, in: nil, atMost: 3)), !page.isEmpty {
                #expect(page.count <= 3)
                seen += page.map(\.id.rawValue)
                cursor = page.last?.id
            }
            #expect(seen == [0, 1, 2, 3, 4, 5, 6])
            let dead = try await store.grants(after: GrantID(rawValue: 3), in: .disconnected, atMost: 10)
            #expect(dead.map(\.id.rawValue) == [5])
            #expect(try await store.grants(after: nil, in: .suspended, atMost: 10).isEmpty)
        }
    }

    @Test("Events come latest first and are never fewer than were recorded", arguments: StoreKind.allCases)
    func events(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let id = GrantID(rawValue: 1)
            try await store.add(try Sample.grants(1...2))
            try await store.change(id) { $0.retry(reason: .invalidGrantUnconfirmed, dueAt: start, at: start) }
            try await store.change(id) { $0.disconnect(reason: .invalidGrant, at: start + .seconds(1)) }
            let events = try await store.events(of: id, atMost: 10)
            #expect(events.map(\.to) == [.disconnected, .retrying])
            #expect(events.map(\.from) == [.retrying, .active])
            #expect(events.map(\.reason) == [.invalidGrant, .invalidGrantUnconfirmed])
            #expect(events.map(\.generation) == [2, 1])
            #expect(events.map(\.at) == [start + .seconds(1), start])
            #expect(try await store.events(of: id, atMost: 1) == [events[0]])
            #expect(try await store.events(of: GrantID(rawValue: 2), atMost: 10).isEmpty)
            // Events of several grants in one transaction, in their order.
            try await store.transact { transaction in
                for generation in 3...5 as ClosedRange<Int64> {
                    for number in [2, 1] as [Int64] {
                        var event = GrantEvent(
                            of: try Sample.grant(number),
                            kind: .scopeChanged,
                            from: nil,
                            at: start + .seconds(2)
                        )
                        event.generation = generation
                        try transaction.record(event)
                    }
                }
            }
            #expect(try await store.events(of: id, atMost: 10).map(\.generation) == [5, 4, 3, 2, 1])
            #expect(try await store.events(of: GrantID(rawValue: 2), atMost: 10).map(\.generation) == [5, 4, 3])
        }
    }

    @Test("Grants of one Google account are found by its id, else by e-mail", arguments: StoreKind.allCases)
    func sharedAccounts(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let asked = try Sample.grant(1, owner: .init(googleUserID: "g", email: "Mail@Example.com"))
            let askedByMail = try Sample.grant(2, owner: .init(email: "mAIL@example.com"))
            try await store.add([
                asked,
                askedByMail,
                try Sample.grant(3, owner: .init(googleUserID: "g", email: "other@example.com")),
                try Sample.grant(4, owner: .init(googleUserID: "h", email: "mail@example.com")),
                try Sample.grant(5, owner: .init(googleUserID: "g"), refreshToken: nil),
                try Sample.grant(6),
            ])
            let byID = try await store.transact { try $0.grants(sharingAccountWith: asked).map(\.id.rawValue) }
            #expect(byID == [2, 3])
            let byMail = try await store.transact { try $0.grants(sharingAccountWith: askedByMail).map(\.id.rawValue) }
            #expect(byMail == [1, 4])
            let nameless = try Sample.grant(6)
            #expect(try await store.transact { try $0.grants(sharingAccountWith: nameless).isEmpty })
        }
    }

    @Test("The health of a client is kept, even if it is empty", arguments: StoreKind.allCases)
    func health(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.transact { try $0.setClientHealth([1, 2], of: "a") }
            try await store.transact { try $0.setClientHealth([3], of: "a") }
            try await store.transact { try $0.setClientHealth([], of: "b") }
            #expect(try await store.clientHealth() == ["a": [3], "b": []])
            #expect(try await store.transact { try $0.clientHealth("a") } == [3])
            #expect(try await store.transact { try $0.clientHealth("c") } == nil)
        }
    }

    @Test("A closed store reports that it is closed, and closing twice is allowed", arguments: StoreKind.allCases)
    func closing(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            await store.close()
            await store.close()
            let reading = await #expect(throws: StoreError.self) { try await store.grant(GrantID(rawValue: 1)) }
            #expect(reading?.code == .closed)
            let writing = await #expect(throws: StoreError.self) { try await store.transact { _ in } }
            #expect(writing?.code == .closed)
        }
    }
}
