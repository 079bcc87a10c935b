import Foundation
import TestSupport
import Testing

@testable import Base
@testable import Records
@testable import RefreshWorker
@testable import Storage

@Suite("users import stores valid records and reports the others", .timeLimit(.minutes(10)))
struct UserImportTests {
    /// The result of one import.
    private struct Result {
        var tally = ImportTally()
        var reports: [String] = []
        var ignored: Set<String> = []
    }

    private let time = ManualTime()

    private func run(
        _ text: String,
        into store: (any Store)?,
        map: UserFieldMap = .unmapped,
        replacing: Bool = false,
        isDryRun: Bool = false
    ) async throws -> Result {
        final class Reports {
            var lines: [String] = []
        }
        let reports = Reports()
        var users = UserImport(
            store: store,
            map: map,
            replacesExisting: replacing,
            isDryRun: isDryRun,
            time: time
        ) {
            reports.lines.append($0)
        }
        try await users.feed(Array(text.utf8))
        try await users.finish()
        return Result(tally: users.tally, reports: reports.lines, ignored: users.ignored)
    }

    @Test("Every field is stored, from lines and from an array")
    func fields() async throws {
        let store = try TestStore(time: time)
        let text = """
            [{"user_id": "a", "email": "a@b.c", "name": "A", "created_on": "2020-01-31T12:00:00Z", \
            "google_user_id": 123, "picture": "https://example.com/a", "is_active": false},
            {"user_id": 7, "created_at": 86400}, {"user_id": "c", "created_on": "9999-01-01T00:00:00Z", "name": null}]
            """
        let result = try await run(text, into: store)
        #expect(result.tally.stored == 3 && result.reports.isEmpty)
        #expect(
            try await store.user("a")
                == User(
                    id: "a",
                    createdAt: Timestamp(secondsSince1970: 1_580_472_000),
                    email: "a@b.c",
                    name: "A",
                    picture: "https://example.com/a",
                    googleUserID: "123",
                    isActive: false
                )
        )
        #expect(try await store.user("7") == User(id: "7", createdAt: Timestamp(secondsSince1970: 86_400)))
        #expect(try await store.user("c")?.createdAt == time.now)
    }

    @Test("Invalid lines are reported by number, without their content")
    func badLines() async throws {
        let store = try TestStore(time: time)
        let text = """
            {"user_id": "a", "google_user_id": "1"}
            {"email": "secret@example.com"}
            {"user_id": "b", "is_active": "secret"}
            {"user_id": "c", "created_on": "secret"}
            secret
            {"user_id": "d", "google_user_id": "1"}
            {"user_id": "e", "email": ["secret"]}
            {"user_id": "f"}
            """
        let result = try await run(text, into: store)
        #expect(result.tally.stored == 2 && result.tally.bad == 6)
        #expect(
            result.reports.compactMap { $0.split(separator: ":").first } == [
                "line 2", "line 3", "line 4", "line 5", "line 6", "line 7",
            ]
        )
        #expect(!result.reports.joined().contains("secret"))
        #expect(try await store.user("d") == nil)
        #expect(try await store.user("f") != nil)
    }

    @Test("A stored user is kept; a replacement changes only the fields of the line")
    func existing() async throws {
        let store = try TestStore(time: time)
        _ = try await run(#"{"user_id": "a", "email": "a@b.c", "name": "A"}"#, into: store)
        let text = #"{"user_id": "a", "email": "new@b.c"}"#
        let kept = try await run(text, into: store)
        #expect(kept.tally.kept == 1 && kept.reports == ["line 1: user 'a' is stored with other content: kept"])
        #expect(try await store.user("a")?.email == "a@b.c")
        let replaced = try await run(text, into: store, replacing: true)
        #expect(replaced.tally.replaced == 1 && replaced.reports.isEmpty)
        #expect(try await store.user("a")?.email == "new@b.c")
        #expect(try await store.user("a")?.name == "A")
    }

    @Test("A user known only from a token is completed, and keeps the stored fields")
    func completed() async throws {
        let store = try TestStore(time: time)
        let now = time.now
        try await store.transact { transaction in
            try transaction.insert(User(id: "a", createdAt: now, email: "a@b.c", emailIsVerified: true))
            try transaction.insert(User(id: "b", createdAt: Timestamp(secondsSince1970: 1), name: "B", picture: "p"))
        }
        let text = """
            {"user_id":"a","email":"old@b.c","name":"A","created_on":86400,"google_user_id":"1","email_verified":false}
            {"user_id":"b","name":"Other","picture":"p","created_on":86400,"is_active":false}
            """
        let dry = try await run(text, into: store, isDryRun: true)
        #expect(dry.tally == ImportTally(completed: 2))
        #expect(try await run(text, into: store).tally == ImportTally(completed: 2))
        #expect(
            try await store.user("a")
                == User(
                    id: "a",
                    createdAt: Timestamp(secondsSince1970: 86_400),
                    email: "a@b.c",
                    emailIsVerified: true,
                    name: "A",
                    googleUserID: "1"
                )
        )
        let former = User(id: "b", createdAt: Timestamp(secondsSince1970: 1), name: "B", picture: "p", isActive: false)
        #expect(try await store.user("b") == former)
        #expect(try await run(text, into: store).tally == ImportTally(kept: 2))
        // A date does not replace a stored instant of the same day: the instant is more precise.
        let date = #"{"user_id":"a","created_on":"1970-01-02"}"#
        try await store.transact { transaction in
            try transaction.insert(User(id: "c", createdAt: Timestamp(secondsSince1970: 90_000), name: "C"))
        }
        #expect(try await run(date.replacing("\"a\"", with: "\"c\""), into: store).tally == ImportTally(kept: 1))
        #expect(try await store.user("c")?.createdAt == Timestamp(secondsSince1970: 90_000))
    }

    @Test("A user known only from a grant is completed")
    func placeholder() async throws {
        let store = try TestStore(time: time)
        let now = time.now
        try await store.transact { try $0.insert(User(id: "a", createdAt: now)) }
        let result = try await run(#"{"user_id": "a", "email": "a@b.c", "created_on": 86400}"#, into: store)
        #expect(result.tally.stored == 1)
        let expected = User(id: "a", createdAt: Timestamp(secondsSince1970: 86_400), email: "a@b.c")
        #expect(try await store.user("a") == expected)
    }

    @Test("A user who signed up at the backend and signed in here first is one user after the import")
    func joined() async throws {
        let store = try TestStore(time: time)
        let (start, login) = (time.now, time.now + .seconds(60))
        try await store.transact { transaction in
            try transaction.insert(
                User(
                    id: "here",
                    createdAt: start,
                    email: "a@gmail.com",
                    emailIsVerified: true,
                    name: "Google's",
                    picture: "p",
                    googleUserID: "1",
                    lastLoginAt: login,
                    isFromSignIn: true
                )
            )
            try transaction.insert(User(id: "imported", createdAt: start, googleUserID: "2"))
        }
        let text = """
            {"user_id":"backend","email":"a@gmail.com","name":"A","google_user_id":"1","created_on":86400}
            {"user_id":"other","google_user_id":"2"}
            """
        let dry = try await run(text, into: store, isDryRun: true)
        #expect(dry.tally.completed == 1 && dry.tally.bad == 1)
        #expect(try await store.user("here") != nil)
        let result = try await run(text, into: store)
        #expect(result.tally.completed == 1 && result.tally.bad == 1)
        #expect(result.reports[0] == "line 1: user 'backend' is also user 'here', who signed in here: joined")
        #expect(try await store.user("here") == nil)
        #expect(
            try await store.user("backend")
                == User(
                    id: "backend",
                    createdAt: Timestamp(secondsSince1970: 86_400),
                    email: "a@gmail.com",
                    emailIsVerified: true,
                    name: "A",
                    picture: "p",
                    googleUserID: "1",
                    lastLoginAt: login
                )
        )
        let again = try await run(text, into: store)
        #expect(again.tally.unchanged == 1 && again.tally.bad == 1)
    }

    @Test("A user whom the backend knows by this id, or who has a second grant, is not joined")
    func notJoined() async throws {
        let store = try TestStore(time: time)
        let now = time.now
        try await store.transact { transaction in
            for (id, account) in [("here 1", "1"), ("here 2", "2")] {
                try transaction.insert(User(id: id, createdAt: now, googleUserID: account, isFromSignIn: true))
            }
            for (number, id) in ["here 2", "backend 2"].enumerated() {
                let (grant, _) = Grant.connected(
                    id: GrantID(rawValue: Int64(number)),
                    userID: id,
                    incoming: IncomingTokens(clientID: "client"),
                    dueAt: nil,
                    at: now
                )
                try transaction.insert(grant)
            }
        }
        let text = """
            {"user_id":"here 1"}
            {"user_id":"backend 1","google_user_id":"1"}
            {"user_id":"backend 2","google_user_id":"2"}
            """
        let result = try await run(text, into: store)
        #expect(result.tally.bad == 2)
        #expect(try await store.user("here 1")?.googleUserID == "1")
        #expect(try await store.user("here 2")?.googleUserID == "2")
    }

    @Test("A deleted user is not restored", arguments: [false, true])
    func deleted(replacing: Bool) async throws {
        let store = try TestStore(time: time)
        let now = time.now
        _ = try await store.transact { transaction in
            try transaction.insert(User(id: "a", createdAt: now))
            return try AccountDeletion.delete(user: "a", in: transaction, at: now)
        }
        let result = try await run(#"{"user_id": "a", "email": "a@b.c"}"#, into: store, replacing: replacing)
        let end = "was deleted: not stored until every token that names the user has expired"
        #expect(result.tally == ImportTally(deletedHere: 1), "that is no bad record")
        #expect(result.reports == ["line 1: user 'a' \(end)"])
        #expect(try await store.user("a")?.email == nil)
    }

    // MARK: The former stores' rows

    private static let payPulseRow = """
        {"UserID":{"S":"user_1"},"Email":{"S":"a@example.com"},"Name":{"S":"Ann"},"Password":{"S":"$2b$12$SECRET"},\
        "CreatedOn":{"S":"2025-06-01"},"CreatedAt":{"S":"12:34:56.123456"}}
        """
    private static let payPulseUser = User(
        id: "user_1",
        createdAt: Timestamp(milliseconds: 1_748_781_296_123),
        email: "a@example.com",
        name: "Ann"
    )

    @Test(
        "PayPulse's rows are read from DynamoDB exports, scans and plain JSON",
        arguments: [
            "{\"Item\":\(payPulseRow)}", payPulseRow, "[\(payPulseRow)]", "{\"Item\":\(payPulseRow)}\r\n",
            """
            {"UserID":"user_1","Email":"a@example.com","Name":"Ann","CreatedOn":"2025-06-01",
             "CreatedAt":"12:34:56.123456","Password":"$2b$12$SECRET"}
            """,
        ]
    )
    func payPulse(text: String) async throws {
        let store = try TestStore(time: time)
        let result = try await run(text, into: store, map: .payPulse)
        #expect(result.tally == ImportTally(stored: 1) && result.reports.isEmpty)
        #expect(try await store.user("user_1") == Self.payPulseUser)
        #expect(result.ignored == ["Password"])
    }

    @Test("ComprehensionEngine's rows are read as PostgreSQL writes them")
    func comprehensionEngine() async throws {
        let store = try TestStore(time: time)
        let text = """
            {"id":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff","email":"j@gmail.com","name":"J","google_id":"1001",\
            "avatar_url":"https://x/y","created_at":"2025-08-25T12:00:00.123456+02:00",\
            "last_login":"2025-09-01T10:00:00+00:00","is_active":false}
            """
        let result = try await run(text, into: store, map: .comprehensionEngine)
        #expect(result.tally == ImportTally(stored: 1) && result.reports.isEmpty && result.ignored.isEmpty)
        #expect(
            try await store.user("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
                == User(
                    id: "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
                    createdAt: Timestamp(milliseconds: 1_756_116_000_123),
                    email: "j@gmail.com",
                    name: "J",
                    picture: "https://x/y",
                    googleUserID: "1001",
                    lastLoginAt: Timestamp(secondsSince1970: 1_756_720_800),
                    isActive: false
                )
        )
    }

    @Test("A custom map renames only the fields that it names")
    func ownMap() async throws {
        let store = try TestStore(time: time)
        let map = try UserFieldMap(reading: "user_id=uid,created_on=since,email_verified=ok")
        let result = try await run(
            #"{"uid":"a","since":"2025-06-01","name":"A","ok":true,"x":1}"#,
            into: store,
            map: map
        )
        #expect(result.ignored == ["x"])
        let createdAt = Timestamp(secondsSince1970: 1_748_736_000)
        let expected = User(id: "a", createdAt: createdAt, emailIsVerified: true, name: "A")
        #expect(try await store.user("a") == expected)
    }

    @Test(
        "A problem names the field, the type of its value and the remedy",
        arguments: [
            ("{\"Item\":\(payPulseRow)}", UserFieldMap.unmapped, "user_id is missing; the row fits --map paypulse"),
            (
                #"{"id":"a","google_id":"1"}"#, .unmapped,
                "user_id is missing; the row fits --map comprehension-engine"
            ),
            (
                #"{"id":"a","google_id":"1"}"#, .payPulse,
                "UserID (user_id) is missing; the row fits --map comprehension-engine"
            ),
            (#"{"user_id":"a"}"#, .payPulse, "UserID (user_id) is missing; the row needs no --map"),
            (
                #"{"uid":"a"}"#, .unmapped,
                "user_id is missing; name the field that holds the user's id: --map user_id=NAME"
            ),
            (
                #"{"user_id":"a","created_on":"31.1.2026 SECRET"}"#, .unmapped,
                """
                created_on is a string in another form; it must be a date such as 2026-01-31, a time such as \
                2026-01-31T12:00:00Z, or a number of seconds since 1970
                """
            ),
            (
                #"{"UserID":"a","CreatedOn":["SECRET"]}"#, .payPulse,
                """
                CreatedOn (created_on) is an array; it must be a date such as 2026-01-31, a time such as \
                2026-01-31T12:00:00Z, or a number of seconds since 1970
                """
            ),
            (
                #"{"UserID":"a","CreatedAt":"12:00:00"}"#, .payPulse,
                "CreatedAt (created_at) is a time of day without a date; CreatedOn (created_on) must hold the date"
            ),
            (#"{"user_id":"a","email":{"B":"SECRET"}}"#, .unmapped, "email is an object; it must be a string"),
            (
                "{\"Items\":[\(payPulseRow)]}", .payPulse,
                "Items holds many rows in one object; each row must be an object: aws dynamodb scan --query 'Items[]'"
            ),
        ]
    )
    func problems(text: String, map: UserFieldMap, problem: String) async throws {
        let result = try await run("\n" + text, into: try TestStore(time: time), map: map)
        #expect(["line 2: \(problem)", "line 2: user 'a': \(problem)"].contains(result.reports.joined()))
        #expect(result.tally.reasonLines == ["bad, 1 of 1: \(problem)"])
        #expect(result.tally.summaryOfReasons.isEmpty, "the reason was reported with its line")
    }

    @Test("Users that are stored as in the file count as unchanged, so a second run checks the first")
    func unchanged() async throws {
        let store = try TestStore(time: time)
        let text = #"{"user_id":"a","email":"a@b.c","created_on":"2025-06-01"}"# + "\n" + #"{"user_id":"b"}"#
        let dry = try await run(text, into: store, isDryRun: true)
        #expect(dry.tally == ImportTally(stored: 2))
        #expect(try await store.user("a") == nil)
        #expect(try await run(text, into: store).tally == ImportTally(stored: 2))
        time.advance(by: .seconds(60))
        for replacing in [false, true] {
            for isDryRun in [false, true] {
                let again = try await run(text, into: store, replacing: replacing, isDryRun: isDryRun)
                #expect(again.tally == ImportTally(unchanged: 2) && again.reports.isEmpty)
            }
        }
        let changed = text.replacingOccurrences(of: "a@b.c", with: "new@b.c")
        let dryReplacing = try await run(changed, into: store, replacing: true, isDryRun: true)
        #expect(dryReplacing.tally == ImportTally(replaced: 1, unchanged: 1))
        #expect(try await store.user("a")?.email == "a@b.c")
    }

    @Test("A dry run without a database finds no user stored")
    func dryRunWithoutDatabase() async throws {
        let text = [#"{"user_id":"a","email":"a@b.c"}"#, #"{"user_id":"b"}"#, #"{"user_id":7e9}"#].joined(
            separator: "\n"
        )
        let result = try await run(text, into: nil, isDryRun: true)
        #expect(result.tally.stored == 2 && result.tally.bad == 1)
    }

    @Test("A sign-in here is later than the last one in the file")
    func lastLogin() async throws {
        let store = try TestStore(time: time)
        let login = time.now
        try await store.transact { try $0.insert(User(id: "a", createdAt: login, lastLoginAt: login)) }
        let text = #"{"user_id":"a","last_login":"2020-01-01","email":"a@b.c","email_verified":true}"#
        #expect(try await run(text, into: store, replacing: true).tally.replaced == 1)
        let user = try await store.user("a")
        #expect(user?.lastLoginAt == login && user?.emailIsVerified == true)
    }

    @Test("Reasons are counted, and a file with many different ones does not fill the memory")
    func reasons() {
        var tally = ImportTally(stored: 1)
        for number in 0..<1000 {
            tally.countBad("the same")
            tally.countBad("reason \(number)")
        }
        #expect(tally.bad == 2000 && tally.read == 2001)
        #expect(tally.reasonLines.count == 21)
        #expect(tally.summaryOfReasons == tally.reasonLines)
        #expect(tally.reasonLines.first == "bad, 1000 of 2001: the same")
        #expect(tally.reasonLines.last == "bad, 981 of 2001: for other reasons, see above")
    }
}
