import TestSupport
import Testing

@testable import Base
@testable import GoogleSandbox
@testable import HTTPServer

/// A sandbox with a manual clock and seeded random numbers, called without a socket.
struct SandboxFixture {
    struct Answer {
        let status: Int
        let body: OrderedJSON
        let headers: [ServerRequest.Field]

        func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
        var accessToken: String { body["access_token"]?.stringValue ?? "" }
        var error: String? { body["error"]?.stringValue }
    }

    let time = ManualTime()
    let sandbox: Sandbox

    init(seed: UInt64 = 1) {
        sandbox = Sandbox(time: time, random: SeededRandom(seed: seed)) { _ in }
    }

    /// `nil` if the connection ended without a byte.
    func ask(
        _ method: String,
        _ target: String,
        form: [String: String] = [:],
        bearer: String? = nil,
        proof: String? = nil
    ) async -> Answer? {
        let parts = target.split(separator: "?", maxSplits: 1)
        let query = parts.count < 2 ? [] : ServerRequest(method: "", path: "", body: Array(parts[1].utf8)).form
        let body = form.map { "\($0.key)=\($0.value.replacing("+", with: "%2B"))" }.joined(separator: "&")
        let request = ServerRequest(
            method: method,
            path: String(parts[0]),
            query: query,
            headers: (bearer.map { [("authorization", "Bearer \($0)")] } ?? [])
                + (proof.map { [("host", "127.0.0.1:8099"), ("dpop", $0)] } ?? []),
            body: Array(body.utf8)
        )
        return Self.read(await sandbox.answer(request))
    }

    @discardableResult
    func control(_ route: String, _ body: String = "{}") async -> Answer? {
        Self.read(
            await sandbox.answer(ServerRequest(method: "POST", path: "/control/\(route)", body: Array(body.utf8)))
        )
    }

    func refresh(_ token: String, client: String = "c1") async -> Answer? {
        await ask("POST", "/token", form: ["client_id": client, "grant_type": "refresh_token", "refresh_token": token])
    }

    func statistics() async -> OrderedJSON {
        await ask("GET", "/control/stats?grants=1")?.body ?? .null
    }

    /// Creates a grant of client c1 and user s1.
    func grant(_ token: String, sub: String = "s1") async {
        let answer = await control(
            "grants",
            #"{"grants":[{"refresh_token":"\#(token)","client_id":"c1","sub":"\#(sub)","email":"\#(sub)@example.com"}]}"#
        )
        #expect(answer?.status == 200)
    }

    private static func read(_ reply: ServerReply) -> Answer? {
        guard case .respond(let response) = reply else { return nil }
        return Answer(
            status: response.status,
            body: OrderedJSON.parsed(response.body) ?? .string(String(decoding: response.body, as: UTF8.self)),
            headers: response.headers
        )
    }
}
