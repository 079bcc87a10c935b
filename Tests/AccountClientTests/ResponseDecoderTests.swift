import AccountClient
import Foundation
import TestSupport
import Testing

@Suite("The backend's responses", .timeLimit(.minutes(10)))
struct ResponseDecoderTests {
    private let store = InMemoryTokenStore()

    private func client(answering body: String, status: String = "200 OK") throws -> (AccountClient, Backend) {
        let backend = try Backend { _ in answer(body, status: status) }
        try backend.signIn(into: store)
        return (try backend.client(store), backend)
    }

    @Test(
        "The user is parsed with dates in every form",
        arguments: [
            "2024-11-01T10:00:00Z", "2024-11-01T10:00:00.123Z", "2024-11-01T10:00:00.123456", "2024-11-01T10:00:00",
            "2024-11-01T12:00:00+02:00", "2024-11-01T12:00:00.5+02:00",
        ]
    )
    func user(date: String) async throws {
        let (client, backend) = try client(
            answering: """
                {"id":"7","email":"a@example.com","name":"Ann","picture":"https://p","avatar_url":null,
                "created_at":"\(date)","last_login":null,"is_active":true,"more":1}
                """
        )
        let user = try await client.fetchCurrentUser()
        #expect(backend.requests.map(\.line) == ["GET /api/auth/me"])
        #expect(user.id == "7")
        #expect(user.email == "a@example.com")
        #expect(user.name == "Ann")
        #expect(user.picture == "https://p")
        #expect(user.avatarURL == nil)
        #expect(user.createdAt == Date(timeIntervalSince1970: 1_730_455_200))
        #expect(user.lastLogin == nil)
        #expect(user.isActive)
    }

    @Test(
        "A user without a required field is unreadable",
        arguments: [
            "", "[]", #"{"id":"7"}"#, #"{"id":7,"is_active":true}"#,
            #"{"id":"7","is_active":true,"created_at":"today"}"#,
        ]
    )
    func unreadableUser(body: String) async throws {
        let (client, backend) = try client(answering: body)
        await #expect(throws: AccountError.unreadableResponse(status: 200)) { try await client.fetchCurrentUser() }
        #expect(backend.requests.count == 1)
    }

    @Test(
        "An error is parsed in both of the backend's forms, and in any other",
        arguments: [
            (#"{"detail":"Inactive user"}"#, nil, "Inactive user"),
            (#"{"error":{"code":"USER_NOT_FOUND","message":"User not found"}}"#, "USER_NOT_FOUND", "User not found"),
            (#"{"detail":[{"input":"x"}]}"#, nil, nil), ("<html>", nil, nil), ("", nil, nil),
        ] as [(String, String?, String?)]
    )
    func refusal(body: String, code: String?, message: String?) async throws {
        let (client, backend) = try client(answering: body, status: "404 Not Found")
        await #expect(throws: AccountError.refused(status: 404, code: code, message: message)) {
            try await client.profile()
        }
        #expect(backend.requests.map(\.line) == ["GET /v1/user/me"])
    }

    @Test("No text contains a token, even if the server repeats it")
    func withoutSecrets() async throws {
        let (client, backend) = try client(
            answering: #"{"error":{"code":"X google-access","message":"bad google-access"}}"#,
            status: "400 Bad Request"
        )
        let tokens = GoogleTokens(accessToken: "google-access", refreshToken: "google-refresh")
        let storing = await #expect(throws: AccountError.self) { try await client.connectGoogle(tokens) }
        let signingIn = await #expect(throws: AccountError.self) {
            try await client.signIn(googleAccessToken: "google-access")
        }
        var text = ""
        dump(client, to: &text)
        dump(store, to: &text)
        dump(tokens, to: &text)
        text += "\(tokens) \(String(reflecting: tokens)) \(client) \(store)"
        for error in [storing, signingIn] {
            dump(try #require(error), to: &text)
            text += "\(try #require(error)) \(try #require(error).localizedDescription)"
        }
        #expect(text.contains("The server answered 400"))
        for secret in ["google-access", "google-refresh", "refresh-1", "access-1", "e30."] {
            #expect(!text.contains(secret))
        }
        #expect(backend.requests.count == 2)
    }
}
