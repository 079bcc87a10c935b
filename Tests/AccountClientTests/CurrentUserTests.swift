import AccountClient
import Foundation
import TestSupport
import Testing

@Suite("The present user and token", .timeLimit(.minutes(10)))
struct CurrentUserTests {
    private let store = InMemoryTokenStore()

    @Test("The user is known without a call")
    func currentUser() async throws {
        let backend = try Backend()
        let client = try backend.client(store)
        #expect(try await client.currentUser == nil)
        store.save(Self.token(#"{"sub":"u-1","email":"ada@gmail.com","exp":1}"#), for: .accessToken)
        store.save("refresh", for: .refreshToken)
        let later = try backend.client(store)
        #expect(try await later.currentUser?.id == "u-1")
        #expect(try await later.currentUser?.email == "ada@gmail.com")
        #expect(backend.requests.isEmpty)
    }

    @Test("Without an access token, the refresh token names the user")
    func refreshTokenAlone() async throws {
        let backend = try Backend()
        store.save(Self.token(#"{"sub":"u-1","email":"","exp":1}"#), for: .refreshToken)
        let client = try backend.client(store)
        #expect(try await client.currentUser?.id == "u-1")
        #expect(try await client.currentUser?.email == nil)
        #expect(backend.requests.isEmpty)
    }

    @Test("Tokens that cannot be read have no user, and the user is signed in")
    func unreadable() async throws {
        let backend = try Backend()
        store.save("opaque", for: .accessToken)
        store.save("opaque", for: .refreshToken)
        let client = try backend.client(store)
        #expect(try await client.currentUser == nil)
        #expect(try await client.isSignedIn)
    }

    @Test("A fresh token is given without a call, and one with less than a minute left after a refresh")
    func accessToken() async throws {
        let backend = try Backend()
        try backend.signIn(into: store, secondsLeft: 61)
        let client = try backend.client(store)
        #expect(try await client.accessToken() == store.load(.accessToken))
        #expect(backend.refreshes == 0)
        backend.advance(bySeconds: 2)
        #expect(try await client.accessToken().hasSuffix("access-2"))
        #expect(backend.refreshes == 1)
    }

    @Test("A token that the server refused is replaced once for all callers")
    func refusedToken() async throws {
        let backend = try Backend()
        try backend.signIn(into: store)
        let client = try backend.client(store)
        let refused = try await client.accessToken()
        async let one = client.accessToken(replacing: refused)
        async let other = client.accessToken(replacing: refused)
        #expect(try await one.hasSuffix("access-2"))
        #expect(try await other.hasSuffix("access-2"))
        #expect(try await client.accessToken(replacing: refused).hasSuffix("access-2"))
        #expect(backend.refreshes == 1)
    }

    @Test("Without a user there is no token")
    func signedOut() async throws {
        let backend = try Backend()
        let client = try backend.client(store)
        await #expect(throws: AccountError.signedOut) { try await client.accessToken() }
    }

    @Test("The app's own session is asked for a new token if its own expires")
    func ownSession() async throws {
        let backend = try Backend()
        let client = try backend.client { isRenewed in
            isRenewed
                ? Backend.token("new", user: "eve", expiresIn: 1800) : Backend.token("old", user: "eve", expiresIn: 59)
        }
        #expect(try await client.accessToken().hasSuffix("new"))
    }

    @Test("An ID token signs in, with its nonce")
    func idToken() async throws {
        let backend = try Backend()
        let client = try backend.client(store)
        try await client.signIn(googleIDToken: "id-token", nonce: "n-1")
        try await client.signIn(googleIDToken: "id-token")
        let bodies = try backend.requests.map { request in
            try JSONDecoder().decode([String: String].self, from: Data(request.body.utf8))
        }
        #expect(bodies == [["id_token": "id-token", "nonce": "n-1"], ["id_token": "id-token"]])
        #expect(try await client.isSignedIn)
    }

    @Test("The server's refusal never repeats an ID token")
    func refusedIDToken() async throws {
        let backend = try Backend { _ in answer(#"{"detail":"bad secret-id-token"}"#, status: "400 Bad Request") }
        let client = try backend.client(store)
        let error = await #expect(throws: AccountError.self) {
            try await client.signIn(googleIDToken: "secret-id-token")
        }
        #expect(error?.description.contains("secret") == false)
    }

    @Test("Nonces differ, and are plain letters of 256 bits")
    func nonces() {
        let nonces = (1...100).map { _ in AccountClient.makeNonce() }
        #expect(Set(nonces).count == 100)
        let letters = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-_"))
        #expect(nonces.allSatisfy { $0.count == 43 && $0.unicodeScalars.allSatisfy(letters.contains) })
    }

    private static func token(_ payload: String) -> String {
        let text = Data(payload.utf8).base64EncodedString().replacingOccurrences(of: "=", with: "")
        return "e30.\(text).signature"
    }
}
