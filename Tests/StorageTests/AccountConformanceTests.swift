import Base
import Crypto
import TestSupport
import Testing

@testable import Storage

@Suite("Every store keeps users and sessions", .timeLimit(.minutes(10)))
struct AccountConformanceTests {
    @Test("A user is read back completely, and changed", arguments: StoreKind.allCases)
    func users(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var full = User(
                id: "Ünïcode \0 user",
                createdAt: start,
                email: "A@b.c",
                emailIsVerified: true,
                name: "",
                picture: "https://example.com/p",
                googleUserID: "123",
                lastLoginAt: start + .seconds(1),
                isActive: false,
                tokensUntil: start + .seconds(2),
                isFromSignIn: true
            )
            let bare = User(id: "bare", createdAt: start)
            let stored = [full, bare]
            try await store.transact { transaction in
                for user in stored { try transaction.insert(user) }
            }
            #expect(try await store.user(full.id) == full)
            #expect(try await store.user("bare") == bare)
            #expect(try await store.user("missing") == nil)
            #expect(try await store.transact { try $0.user("missing") } == nil)

            full.signIn(as: Grant.Owner(googleUserID: "123", email: "new@b.c"), picture: nil, at: start + .seconds(9))
            let changed = full
            try await store.transact { try $0.update(changed) }
            #expect(try await store.user(full.id) == changed)
            let older = User(id: "bare", createdAt: start - .seconds(5), name: "B")
            try await store.transact { try $0.update(older) }
            #expect(try await store.user("bare") == older)
            #expect(changed.email == "new@b.c" && changed.emailIsVerified == nil && changed.name == "")
            #expect(changed.picture == "https://example.com/p" && changed.lastLoginAt == start + .seconds(9))
        }
    }

    @Test("Users are found by their account at Google, and by e-mail without case", arguments: StoreKind.allCases)
    func finding(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.transact { transaction in
                try transaction.insert(User(id: "a", createdAt: start, email: "Mail@Example.com", googleUserID: "1"))
                try transaction.insert(User(id: "b", createdAt: start, email: "mAIL@example.com"))
                try transaction.insert(User(id: "c", createdAt: start))
                #expect(try transaction.user(withGoogleUserID: "1")?.id == "a")
                #expect(try transaction.user(withGoogleUserID: "2") == nil)
                #expect(try transaction.users(withEmail: "MAIL@example.COM").map(\.id) == ["a", "b"])
                #expect(try transaction.users(withEmail: "other@example.com").isEmpty)
            }
            #expect(try await store.users(withEmail: "MAIL@example.COM").map(\.id) == ["a", "b"])
        }
    }

    @Test("A user's sessions and grant move to another user", arguments: StoreKind.allCases)
    func moving(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let grant = try Sample.grant(1)
            try await store.transact { transaction in
                try transaction.insert(User(id: grant.userID, createdAt: start))
                try transaction.insert(grant)
                try transaction.insert(User(id: "other", createdAt: start))
                try transaction.insert(User(id: "third", createdAt: start))
            }
            try await store.startSessions([
                Sample.session(1, user: grant.userID), Sample.session(2, user: "other"),
                Sample.session(3, user: "third"),
            ])
            try await store.transact { transaction in
                #expect(try transaction.grant(ofUser: grant.userID)?.id == grant.id)
                try transaction.move(user: grant.userID, to: "other", at: start)
                #expect(try transaction.grant(grant.id)?.userID == "other")
                #expect(try transaction.grant(ofUser: grant.userID) == nil)
                #expect(try transaction.user(grant.userID) == nil)
            }
            #expect(try await store.grant(ofUser: "other")?.id == grant.id)
            #expect(try await store.user(grant.userID) == nil)
            for (number, user) in [(1, "other"), (2, "other"), (3, "third")] {
                #expect(try await store.session(Sample.sessionID(UInt8(number)), ofUser: user) != nil)
            }
            try await store.transact { try $0.move(user: "third", to: "other", at: start) }
            #expect(try await store.session(Sample.sessionID(3), ofUser: "other") != nil)
            // Their tokens name the former ids, also if one is in use again.
            try await store.transact { try $0.insert(User(id: "third", createdAt: start)) }
            for (number, user) in [(1, grant.userID), (3, "third")] {
                let id = Sample.sessionID(UInt8(number))
                #expect(try await store.session(id, ofUser: user) == nil)
                #expect(try await store.session(id, ofTokenFor: user)?.userID == "other")
                #expect(try await store.transact { try $0.session(id, ofTokenFor: user) }?.userID == "other")
                #expect(try await store.session(id, ofTokenFor: "stranger") == nil)
            }
            // A result that was in flight is compared with the moved grant.
            let isReplaced = try await store.transact { try $0.replace(grant, by: grant) }
            #expect(!isReplaced)
        }
    }

    @Test(
        "Grants are found by the e-mail address of their user or account, without case",
        arguments: StoreKind.allCases
    )
    func grantsOfEmail(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var grants = try Sample.grants(1...4)
            grants[0].owner.email = "Ada@b.c"
            grants[1].owner.email = "bob@b.c"
            try await store.add(grants)
            try await store.transact { transaction in
                for (user, email) in [("user 1", "ada@b.c"), ("user 3", "ADA@b.c"), ("user 4", "eve@b.c")] {
                    var stored = try #require(try transaction.user(user))
                    stored.email = email
                    try transaction.update(stored)
                }
            }
            #expect(try await store.grants(ofEmail: "aDa@b.c", atMost: 9).map(\.id.rawValue) == [1, 3])
            #expect(try await store.grants(ofEmail: "aDa@b.c", atMost: 1).map(\.id.rawValue) == [1])
            #expect(try await store.grants(ofEmail: "a_a@b.c", atMost: 9).isEmpty)
        }
    }

    @Test(
        "An account at Google is free once its user has left it, and never by a conflict",
        arguments: StoreKind.allCases
    )
    func accounts(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            func owner(of account: String) async throws -> String? {
                try await store.transact { try $0.user(withGoogleUserID: account)?.id }
            }
            try await store.transact { transaction in
                try transaction.insert(User(id: "a", createdAt: start, googleUserID: "1"))
                try transaction.insert(User(id: "b", createdAt: start, googleUserID: "2"))
                // A user that is there already, and an account that another has.
                #expect(throws: StoreError.self) {
                    try transaction.insert(User(id: "a", createdAt: start, googleUserID: "3"))
                }
                #expect(throws: StoreError.self) {
                    try transaction.update(User(id: "b", createdAt: start, googleUserID: "1"))
                }
                #expect(throws: StoreError.self) {
                    try transaction.update(User(id: "missing", createdAt: start, googleUserID: "3"))
                }
            }
            #expect(try await owner(of: "1") == "a")
            #expect(try await owner(of: "2") == "b")
            #expect(try await owner(of: "3") == nil)
            try await store.transact { transaction in
                try transaction.update(User(id: "a", createdAt: start, googleUserID: "3"))
                try transaction.update(User(id: "b", createdAt: start, googleUserID: "1"))
                try transaction.insert(User(id: "c", createdAt: start, googleUserID: "2"))
            }
            #expect(try await owner(of: "1") == "b")
            #expect(try await owner(of: "2") == "c")
            _ = try await store.transact { try AccountDeletion.delete(user: "c", in: $0, at: start) }
            try await store.transact { transaction in
                try transaction.move(user: "a", to: "b", at: start)
                for (user, account) in [("d", "2"), ("e", "3")] {
                    try transaction.insert(User(id: user, createdAt: start, googleUserID: account))
                }
            }
            #expect(try await owner(of: "3") == "e")
        }
    }

    @Test("A second user of one id or one Google account is a conflict", arguments: StoreKind.allCases)
    func conflicts(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.transact { transaction in
                try transaction.insert(User(id: "a", createdAt: start, googleUserID: "1"))
                try transaction.insert(User(id: "b", createdAt: start))
                let attempts: [() throws -> Void] = [
                    { try transaction.insert(User(id: "a", createdAt: start)) },
                    { try transaction.insert(User(id: "c", createdAt: start, googleUserID: "1")) },
                    { try transaction.update(User(id: "b", createdAt: start, googleUserID: "1")) },
                    { try transaction.update(User(id: "missing", createdAt: start)) },
                ]
                for attempt in attempts {
                    let error = #expect(throws: StoreError.self) { try attempt() }
                    #expect(error?.code == .conflict)
                }
            }
            #expect(try await store.user("c") == nil)
        }
    }

    @Test("The first grant of a user creates the user", arguments: StoreKind.allCases)
    func userOfGrant(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let known = User(id: "user 2", createdAt: start - .seconds(5), email: "a@b.c")
            try await store.transact { try $0.insert(known) }
            try await store.add(try Sample.grants(1...2))
            #expect(try await store.user("user 1") == User(id: "user 1", createdAt: start))
            #expect(try await store.user("user 2") == known)
        }
    }

    @Test("A session is read back completely, changed, and ended", arguments: StoreKind.allCases)
    func sessions(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            var session = Sample.session(1)
            try await store.startSessions([session, Sample.session(2), Sample.session(3, user: "other")])
            #expect(try await store.stored(session) == session)

            #expect(try Sample.rotate(&session, 1, to: 2) == .rotated(isLateAnswer: false))
            #expect(try Sample.rotate(&session, 2, to: 3, after: .seconds(1)) == .rotated(isLateAnswer: false))
            let rotated = session
            try await store.transact { try $0.update(rotated) }
            #expect(try await store.stored(session) == rotated)
            #expect(try await store.transact { try $0.session(rotated.id, ofUser: rotated.userID) } == rotated)

            try await store.transact { transaction in
                try transaction.endSession(rotated.id, ofUser: rotated.userID)
                try transaction.endSession(rotated.id, ofUser: rotated.userID)
            }
            #expect(try await store.stored(session) == nil)
            let count = try await store.transact { try $0.endSessions(ofUser: "user") }
            #expect(count == 1)
            #expect(try await store.stored(Sample.session(2)) == nil)
            #expect(try await store.stored(Sample.session(3, user: "other")) != nil)
        }
    }

    @Test(
        "A session without a user, a duplicate id, and a change of an ended one are conflicts",
        arguments: StoreKind.allCases
    )
    func sessionConflicts(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.startSessions([Sample.session(1)])
            try await store.transact { transaction in
                let attempts: [() throws -> Void] = [
                    { try transaction.insert(Sample.session(2, user: "missing")) },
                    { try transaction.insert(Sample.session(1)) },
                    { try transaction.update(Sample.session(3)) },
                ]
                for attempt in attempts {
                    let error = #expect(throws: StoreError.self) { try attempt() }
                    #expect(error?.code == .conflict)
                }
            }
        }
    }

    @Test("A security event is stored once", arguments: StoreKind.allCases)
    func securityEvents(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            try await store.transact { transaction throws in
                #expect(try transaction.recordOnce("a", at: start))
                #expect(try !transaction.recordOnce("a", at: start + .seconds(1)))
                #expect(try transaction.recordOnce("b", at: start))
            }
            let isNew = try await store.transact { try $0.recordOnce("b", at: start) }
            #expect(!isNew)
        }
    }

    @Test("Grants are found by Google account and by the marks of their tokens", arguments: StoreKind.allCases)
    func grantsOfEvents(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let owner = Grant.Owner(googleUserID: "1")
            var grants = [
                try Sample.grant(1, owner: owner), try Sample.grant(2), try Sample.grant(3, owner: owner),
                try Sample.grant(4),
            ]
            let marks = ["token of grant number one", "token of grant number two", "another token"].map {
                TokenMarks(of: Secret($0))
            }
            for (number, marks) in zip([0, 1, 3], marks) {
                var token = try #require(grants[number].refreshToken)
                token.marks = marks
                grants[number].reseal(refreshToken: token, accessToken: nil)
            }
            try await store.add(grants)
            let expected = grants
            try await store.transact { transaction throws in
                #expect(try transaction.grants(ofGoogleUser: "1") == [expected[0], expected[2]])
                #expect(try transaction.grants(withRefreshTokenMark: marks[0].prefix) == [expected[0], expected[1]])
                #expect(try transaction.grants(withRefreshTokenMark: marks[1].digest) == [expected[1]])
                #expect(try transaction.grants(withRefreshTokenMark: marks[2].prefix) == [expected[3]])
            }

            // The marks are deleted with the token.
            try await store.change(GrantID(rawValue: 2)) { $0.disconnectByRequest(revokes: false, at: start) }
            try await store.transact { transaction throws in
                #expect(try transaction.grants(withRefreshTokenMark: marks[1].digest).isEmpty)
            }
        }
    }
}
