import Crypto
import Storage
import TestSupport
import Testing

@testable import Base
@testable import Records
@testable import RefreshWorker

@Suite("Adding a grant", .timeLimit(.minutes(10)))
struct AddedGrantTests {
    private let now = Timestamp(secondsSince1970: 1_800_000_000)

    private func read(
        _ text: String,
        clientID: String? = nil,
        configured: [String] = ["c1"]
    ) throws(CommandError) -> ImportedGrant {
        try ImportedGrant.read(
            Secret(text),
            forUser: "alice",
            connection: .default,
            clientID: clientID,
            configured: configured,
            at: now
        )
    }

    @Test("accepts a refresh token with blanks around it, or JSON")
    func takes() throws {
        #expect(try read(" 1//token\r\n").refreshToken?.reveal() == "1//token")
        let json = try read("{\n\"refresh_token\": \"1//token\",\n\"access_token\": \"ya29.x\", \"expires_in\": 3600}")
        #expect(json.userID == "alice")
        #expect(json.refreshToken?.reveal() == "1//token")
        #expect(json.accessToken?.expiresAt == now + .seconds(3600))
        #expect(try read(#"{"user_id":"alice","refresh_token":"r"}"#).userID == "alice")
    }

    @Test("prefers the client id of the command line")
    func clients() throws {
        #expect(try read("1//token", clientID: "c9", configured: ["a", "b"]).clientID == "c9")
        #expect(try read(#"{"refresh_token":"r","client_id":"c2"}"#, clientID: "c9").clientID == "c9")
        #expect(try read(#"{"refresh_token":"r","client_id":"c2"}"#).clientID == "c2")
        #expect(throws: CommandError(.configuration, "no client id is configured: give --client-id")) {
            try read("1//token", configured: [])
        }
        #expect(throws: CommandError(.configuration, "more than one client id is configured: give --client-id")) {
            try read("1//token", configured: ["a", "b"])
        }
    }

    @Test(
        "refuses other input without printing it",
        arguments: [
            "", " \n", "two SECRET", "SECRET\nSECRET", "ya29.SECRET", "{\"refresh_token\":\"SECRET", "{}",
            "{\"refresh_token\":\"SE CRET\"}", "{\"user_id\":\"SECRET\",\"refresh_token\":\"r\"}",
        ]
    )
    func refuses(text: String) throws {
        let failure = try #require(throws: CommandError.self) { try read(text) }
        #expect(failure.exitCode == .badData)
        #expect(!failure.message.contains("CRET"))
    }

    @Test("makes the grant due immediately, new or as a replacement")
    func due() async throws {
        let fixture = try ImportFixture()
        let writer = fixture.writer(.replace, refreshesAtOnce: true)
        let json = #"{"refresh_token":"1//one","access_token":"ya29.x","expires_in":3600}"#
        #expect(try await writer.store([try read(json)]) == [.stored])
        #expect(try await fixture.grant("alice").dueAt == fixture.time.now)
        fixture.time.advance(by: .seconds(60))
        #expect(try await writer.store([try read("1//two")]) == [.replaced])
        #expect(try await fixture.grant("alice").dueAt == fixture.time.now)
        #expect(try await fixture.refreshToken("alice") == "1//two")
    }
}
