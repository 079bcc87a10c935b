import Base
import Crypto
import Storage
import Testing

@testable import Records

@Suite("Reading a grant's JSON")
struct ImportedGrantTests {
    private let now = Timestamp(secondsSince1970: 1_800_000_000)

    private func read(_ json: String, clientIDs: [String] = ["c1"]) throws -> ImportedGrant {
        try Self.read(Array(json.utf8), clientIDs: clientIDs, at: now)
    }

    private static func read(_ json: [UInt8], clientIDs: [String], at now: Timestamp) throws(InputError)
        -> ImportedGrant
    {
        guard let members = JSONValue.object(in: json)?.object else { throw InputError("not a JSON object") }
        return try ImportedGrant(reading: members.withoutDynamoDBTypes, clientIDs: clientIDs, at: now)
    }

    private func problem(_ json: String, clientIDs: [String] = ["c1"]) -> String? {
        do {
            _ = try read(json, clientIDs: clientIDs)
            return nil
        } catch {
            return (error as? InputError)?.message
        }
    }

    static let knownTimes: [(String, Int64)] = [
        ("1970-01-01T00:00:00", 0),
        ("2027-01-15T08:00:00.123456", 1_800_000_000_123),
        ("2027-01-15T08:00:00.1Z", 1_800_000_000_100),
        ("2027-01-15 08:00", 1_800_000_000_000),
        ("2027-01-15T10:30:00+02:30", 1_800_000_000_000),
        ("2027-01-15T00:00:00-0800", 1_800_000_000_000),
        ("2027-01-15T09:00:00+01", 1_800_000_000_000),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ("2000-03-01T00:00:00Z", 951_868_800_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000),
        ("9999-12-31T23:59:59.999999999Z", 253_402_300_799_999),
    ]

    @Test(
        "parses times",
        arguments: Self.knownTimes
    )
    func times(text: String, milliseconds: Int64) {
        #expect(Timestamp(iso8601: text) == Timestamp(milliseconds: milliseconds))
    }

    @Test(
        "refuses texts that are not times",
        arguments: [
            "", "now", "2027-01-15", "2027-13-01T00:00:00", "2026-02-29T00:00:00", "2100-02-29T00:00:00Z",
            "2027-01-15T24:00:00", "2027-01-15T08:60:00", "2027-01-15T08:00:61", "2027-01-15T08:00:00.",
            "2027-01-15T08:00:00Z ", "2027-01-15T08:00:00 Europe/Berlin", "2027-01-15T08:00:00+2", "+2027-01-15T08:00",
        ]
    )
    func noTimes(text: String) {
        #expect(Timestamp(iso8601: text) == nil)
    }

    @Test("reads every field of a stored secret")
    func everyField() throws {
        let grant = try read(
            """
            {"user_id": 42, "access_token": "ya29.a", "refresh_token": "1//r",
             "expires_at": "2027-01-15T08:30:00.000000", "expires_in": 3599, "scope": ["openid", "email profile"],
             "token_type": "Bearer", "created_at": "2027-01-15T07:30:01.5", "google_user_id": "",
             "google_email": "A@example.com", "google_name": "A B", "google_verified_email": true,
             "refresh_token_expires_in": 86400, "more": {"x": [1]}}
            """
        )
        #expect(grant.userID == "42")
        #expect(grant.clientID == "c1")
        #expect(grant.owner == Grant.Owner(email: "A@example.com", name: "A B", emailIsVerified: true))
        #expect(grant.scope == "openid email profile")
        #expect(grant.refreshToken?.reveal() == "1//r")
        #expect(grant.accessToken?.secret.reveal() == "ya29.a")
        #expect(grant.accessToken?.expiresAt == now + .seconds(1800))
        #expect(grant.accessToken?.obtainedAt == now - .milliseconds(1_798_500))
        #expect(grant.refreshTokenExpiresAt == now - .milliseconds(1_798_500) + .seconds(86400))
        #expect(grant.recordedState == nil)
    }

    @Test("reads the connection and its labels")
    func connections() throws {
        let named = try read(
            #"{"user_id":"u","refresh_token":"r","connection":"work","labels":{"tenant":"acme","feature":"mail"}}"#
        )
        #expect(named.connection == ConnectionID("work"))
        #expect(named.labels == ConnectionLabels(["tenant": "acme", "feature": "mail"]))
        for connection in ["null", "\"\""] {
            let grant = try read(
                #"{"user_id":"u","refresh_token":"r","connection":\#(connection),"labels":null}"#
            )
            #expect(grant.connection == .default && grant.labels == nil)
        }
        let usual = try read(#"{"user_id":"u","refresh_token":"r"}"#)
        #expect(usual.connection == .default && usual.labels == nil)
        #expect(try read(#"{"user_id":"u","refresh_token":"r","labels":{}}"#).labels == ConnectionLabels.none)
    }

    @Test("leaves out the account's id of a connection that has left its account")
    func leftAccount() throws {
        let grant = try read(
            #"{"user_id":"u","google_user_id":"1","state":"disconnected","reason":"account_moved"}"#
        )
        #expect(grant.owner.googleUserID == nil)
        #expect(grant.recordedState?.reason == .accountMoved)
    }

    @Test("takes the connection of JSON that names none from the caller", arguments: [nil, "third"] as [String?])
    func usualConnection(named: String?) throws {
        let work = try #require(ConnectionID("work"))
        var members = ["user_id": JSONValue.string("u"), "refresh_token": .string("r")]
        if let named { members["connection"] = .string(named) }
        let grant = try ImportedGrant(reading: members, clientIDs: ["c1"], connection: work, at: now)
        #expect(grant.connection.description == named ?? "work")
    }

    @Test(
        "knows no scope if the former backend wrote Python's None",
        arguments: [#""None""#, #"["None"]"#, #""""#, "[]", "null"]
    )
    func noScope(scope: String) throws {
        #expect(try read(#"{"user_id":"u","access_token":"a","scope":\#(scope)}"#).scope == nil)
    }

    static let tokenTimes: [(String, Int64, Int64)] = [
        // (fields, obtained, expires) in seconds from now
        (#""expires_in": 3600"#, 0, 3600),
        (#""expires_in": "3599""#, 0, 3599),
        (#""expires_at": 1800001800"#, -1800, 1800),
        (#""expires_at": 1800001800, "expires_in": 7200"#, -5400, 1800),
        // The time of the first sign-in does not apply to this token.
        (#""expires_at": 1800001800, "created_at": "2026-01-01T00:00:00""#, -1800, 1800),
        // The issuer's clock is ahead: the token was not obtained later than now.
        (#""expires_at": 1800009000"#, 0, 9000),
        (#""created_at": 1799999000"#, -1000, 2600),
        // The age is unknown: the token is not vended, because a refresh can replace it.
        (#""scope": null"#, 0, 0),
    ]

    @Test(
        "derives the access token's times from the given fields",
        arguments: Self.tokenTimes
    )
    func dates(fields: String, obtained: Int64, expires: Int64) throws {
        let grant = try read(#"{"user_id":"u","access_token":"a","refresh_token":"r",\#(fields)}"#)
        #expect(grant.accessToken?.obtainedAt == now + .seconds(obtained))
        #expect(grant.accessToken?.expiresAt == now + .seconds(expires))
    }

    @Test("gives a token of unknown age without a refresh token the default hour")
    func unknownAge() throws {
        #expect(try read(#"{"user_id":"u","access_token":"a"}"#).accessToken?.expiresAt == now + .seconds(3600))
    }

    static let secretsOfUsers: [(String, String)] = [
        (#"{"Name":"gmail/user/42","SecretString":"{\"refresh_token\":\"r\"}"}"#, "42"),
        (#"{"ARN":"x","Name":"gmail/user/a b","SecretString":"{\"access_token\":\"r\"}"}"#, "a b"),
        (#"{"Name":"gmail/user/42","SecretString":"{\"user_id\":\"7\",\"refresh_token\":\"r\"}"}"#, "7"),
        (#"{"user_id":"8","Name":"gmail/user/42","SecretString":"{\"refresh_token\":\"r\"}"}"#, "8"),
    ]

    @Test(
        "finds the user of a secret",
        arguments: Self.secretsOfUsers
    )
    func users(json: String, user: String) throws {
        #expect(try read(json).userID == user)
    }

    static let stateFields: [(String, GrantState, String)] = [
        (#""state":"active","reason":"none""#, GrantState.active, "none"),
        (#""state":"disconnected","reason":"invalid_grant""#, .disconnected, "invalid_grant"),
        (#""state":"reauth_required""#, .reauthRequired, "unknown"),
    ]

    @Test(
        "reads a state",
        arguments: Self.stateFields
    )
    func states(fields: String, state: GrantState, reason: String) throws {
        let recordedState = try read(#"{"user_id":"u","refresh_token":"r","since":"2026-01-01T00:00:00Z",\#(fields)}"#)
            .recordedState
        #expect(recordedState?.state == state)
        #expect(recordedState?.reason.rawValue == reason)
        #expect(recordedState?.since == Timestamp(secondsSince1970: 1_767_225_600))
    }

    static let brokenLines: [(String, String)] = [
        ("{}", "user_id is missing"),
        (#"{"user_id":"","refresh_token":"SECRET"}"#, "user_id is missing"),
        (#"{"user_id":1.5,"refresh_token":"SECRET"}"#, "user_id is a number with a sign or a fraction"),
        (#"{"user_id":["SECRET"]}"#, "user_id is an array; it must be a string or a whole number"),
        (#"{"user_id":"a\u0000b","refresh_token":"SECRET"}"#, "user_id contains control characters"),
        (#"{"user_id":"1//SECRET","refresh_token":"a"}"#, "user_id looks like a token or a secret (not shown)"),
        (#"{"user_id":"u"}"#, "refresh_token and access_token are both missing"),
        (#"{"user_id":"u","refresh_token":"","access_token":null}"#, "both missing"),
        (
            #"{"user_id":"u","refresh_token":"SEC RET"}"#,
            "refresh_token is a string in another form; it must be a token"
        ),
        (#"{"user_id":"u","access_token":12}"#, "access_token is a number; it must be a token"),
        (#"{"user_id":"u","access_token":"SECRET\n"}"#, "access_token is a string in another form"),
        (
            #"{"user_id":"u","access_token":"a","expires_at":"SECRET"}"#,
            "expires_at is a string in another form; it must be a time"
        ),
        (
            #"{"user_id":"u","access_token":"a","expires_at":1800000000000}"#,
            "expires_at is a number that is out of range"
        ),
        (#"{"user_id":"u","access_token":"a","expires_at":true}"#, "expires_at is true or false; it must be a time"),
        (#"{"user_id":"u","access_token":"a","expires_in":-1}"#, "expires_in is out of range"),
        (
            #"{"user_id":"u","access_token":"a","expires_in":1e400}"#,
            "expires_in is a number; it must be a number of seconds"
        ),
        (
            #"{"user_id":"u","access_token":"a","scope":"é"}"#,
            "scope is a string in another form; it must be a list of scopes"
        ),
        (#"{"user_id":"u","access_token":"a","scope":[1]}"#, "scope is an array; it must be an array of strings only"),
        (
            #"{"user_id":"u","access_token":"a","google_verified_email":"SECRET"}"#,
            "google_verified_email is a string in another form; it must be true or false"
        ),
        (#"{"user_id":"u","access_token":"a","client_id":"GOCSPX-SECRET"}"#, "client_id: looks like a token"),
        (#"{"user_id":"u","access_token":"a","connection":"new"}"#, "connection must be 1 to 32 letters"),
        (#"{"user_id":"u","access_token":"a","connection":"SECRET one"}"#, "connection must be 1 to 32 letters"),
        (#"{"user_id":"u","access_token":"a","connection":{}}"#, "connection is an object; it must be a string"),
        (#"{"user_id":"u","access_token":"a","labels":"SECRET"}"#, "labels must be at most 10 pairs of texts"),
        (#"{"user_id":"u","access_token":"a","labels":{"tenant":1}}"#, "labels must be at most 10 pairs of texts"),
        (#"{"user_id":"u","access_token":"a","labels":{"tenant":""}}"#, "labels must be at most 10 pairs of texts"),
        (#"{"user_id":"u","access_token":"a","state":"SECRET"}"#, "state must be one of active, retrying"),
        (#"{"user_id":"u","access_token":"a","state":"retrying","reason":"SECRET"}"#, "reason must be a code"),
        (#"{"Name":"gmail/user/1","SecretString":"SECRET"}"#, "SecretString is not the text of a JSON object"),
        (#"{"Name":"gmail/user/","SecretString":"{}"}"#, "user_id is missing"),
    ]

    @Test(
        "names the problem and never shows a value",
        arguments: Self.brokenLines
    )
    func problems(json: String, expected: String) throws {
        let message = try #require(problem(json))
        #expect(message.contains(expected))
        #expect(!message.contains("SECRET"))
    }

    @Test("reads a row of DynamoDB, with and without Item")
    func dynamoDB() throws {
        let row = """
            {"user_id":{"S":"u"},"access_token":{"S":"a"},"expires_in":{"N":"60"},"scope":{"SS":["x","y"]},\
            "google_verified_email":{"BOOL":true},"google_email":{"NULL":true}}
            """
        for text in [row, "{\"Item\":\(row)}"] {
            let grant = try read(text)
            #expect(grant.userID == "u")
            #expect(grant.accessToken?.expiresAt == now + .seconds(60))
            #expect(grant.scope == "x y")
            #expect(grant.owner == Grant.Owner(emailIsVerified: true))
        }
    }

    @Test("needs a client id from the line or the configuration")
    func clients() throws {
        let json = #"{"user_id":"u","refresh_token":"r"}"#
        #expect(problem(json, clientIDs: []) == "client_id is missing, and none is configured")
        #expect(problem(json, clientIDs: ["a", "b"]) == "client_id is missing, and several are configured")
        let named = #"{"user_id":"u","refresh_token":"r","client_id":"own"}"#
        #expect(try read(named, clientIDs: []).clientID == "own")
    }

    @Test("never fails otherwise on random changes of a line", arguments: [11, 12, 13, 14])
    func fuzz(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        let line = Array(
            #"{"user_id":"u","access_token":"a","expires_at":"2027-01-15T08:30:00","scope":["x"],"expires_in":1}"#.utf8
        )
        var good = 0
        for _ in 0..<3000 {
            var changed = line
            for _ in 0...random.nextBits() % 3 {
                let position = Int(random.nextBits() % UInt64(changed.count))
                switch random.nextBits() % 3 {
                case 0: changed[position] = UInt8(truncatingIfNeeded: random.nextBits())
                case 1: changed.remove(at: position)
                default: changed.insert(changed[Int(random.nextBits() % UInt64(changed.count))], at: position)
                }
            }
            do throws(InputError) {
                let grant = try Self.read(changed, clientIDs: ["c"], at: now)
                #expect((1...RecordFields.maximumTextLength).contains(grant.userID.utf8.count), "seed \(seed)")
                good += 1
            } catch {
                #expect(!error.message.isEmpty, "seed \(seed)")
            }
        }
        #expect((1..<3000).contains(good), "seed \(seed)")
    }
}
