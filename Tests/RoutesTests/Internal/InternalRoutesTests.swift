import Base
import Telemetry
import TestSupport
import Testing

@testable import HTTPServer
@testable import Routes

@Suite("The internal routes", .timeLimit(.minutes(10)))
struct InternalRoutesTests {
    @Test(
        "respond on their paths and methods, and refuse all others in one form",
        arguments: [
            ("GET", "/v1/grants/42/token", "200 "), ("GET", "/v1/grants/unknown/token", "404 not_found"),
            ("POST", "/v1/grants/42/token/refresh", "400 invalid_request"), ("GET", "/healthz", "200 "),
            ("POST", "/oauth2/token", "400 invalid_request"), ("GET", "/oauth2/token", "405 invalid_request"),
            ("HEAD", "/healthz", "200 "), ("GET", "/readyz", "503 "), ("GET", "/status", "200 "),
            ("GET", "/metrics", "200 "), ("GET", "/", "200 "), ("HEAD", "/", "200 "), ("GET", "/users", "403 "),
            ("POST", "/", "405 method_not_allowed"), ("GET", "/status-page", "404 unknown_path"),
            ("GET", "/v1/grants//token", "404 unknown_path"),
            ("POST", "/v1/grants/u/token", "405 method_not_allowed"), ("PUT", "/metrics", "405 method_not_allowed"),
        ]
    )
    func routes(method: String, path: String, expected: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add(user: "42")
        let response = try await Self.send(method, path, VendingFixture.credential, in: fixture)
        #expect(ParsedResponse(response).error == expected)
        #expect((response.status == 405) == response.headers.contains { $0.name == "Allow" })
    }

    @Test(
        "require a credential from other machines, and serve them metrics only if configured",
        arguments: [
            ("/v1/grants/42/token", nil, false, "401 unauthorized"),
            ("/v1/grants/42/token", VendingFixture.credential, false, "200 "),
            ("/status", nil, false, "401 unauthorized"), ("/status", "wrong", true, "401 unauthorized"),
            ("/status", VendingFixture.limitedCredential, false, "200 "), ("/healthz", nil, false, "200 "),
            ("/status", VendingFixture.presentCredential, false, "401 unauthorized"),
            ("/metrics", nil, false, "404 metrics_off"),
            ("/metrics", VendingFixture.credential, false, "404 metrics_off"),
            ("/metrics", nil, true, "200 "), ("/", nil, true, "401 "), ("/", "wrong", true, "401 "),
            ("/", VendingFixture.limitedCredential, false, "200 "),
        ] as [(String, String?, Bool, String)]
    )
    func overNetwork(path: String, credential: String?, servesMetrics: Bool, expected: String) async throws {
        let fixture = try VendingFixture()
        try await fixture.add(user: "42")
        let exposure = InternalRoutes.Exposure.network(servesMetrics: servesMetrics)
        for method in ["GET", "HEAD"] {
            let response = try await Self.send(method, path, credential, exposure, in: fixture)
            #expect(ParsedResponse(response).error == expected)
        }
    }

    @Test("are closed to other machines without a credential, except these", arguments: [true, false])
    func open(hasServices: Bool) async throws {
        let fixture = try VendingFixture()
        try await fixture.add(user: "u")
        let routes = await fixture.routes(exposure: .network(servesMetrics: true), hasServices: hasServices)
        var open: [String] = []
        for route in routes.routes {
            let path = "/" + route.parts.map { $0.hasPrefix("{") ? "u" : $0 }.joined(separator: "/")
            // The token endpoint refuses an incomplete body before it looks for a credential.
            let form = [("Content-Type", "application/x-www-form-urlencoded")]
            let body = Array("grant_type=refresh_token&refresh_token=u".utf8)
            let request = ServerRequest(method: route.method, path: path, headers: form, body: body)
            let response = try await VendingFixture.response(to: request, from: routes)
            let refusals = hasServices ? [401] : [401, 503]
            guard !refusals.contains(response.status) else { continue }
            open.append("\(route.method) \(route.pattern) \(response.status)")
        }
        // Each has a reason in docs/services.md#routes-for-monitors.
        let always = ["GET /healthz 200", "GET /metrics 200", "GET /runbook 200"]
        let withServices = ["GET /.well-known/oauth-authorization-server 200", "GET /readyz 503"]
        #expect(open.sorted() == (always + (hasServices ? withServices : [])).sorted())
    }

    @Test(
        "describe the token endpoint under the address that the client used",
        arguments: [
            (.thisMachine, [("Host", "127.0.0.1:9464")], "http://127.0.0.1:9464"),
            (.thisMachine, [("Host", "w.example"), ("X-Forwarded-Proto", "https")], "https://w.example"),
            (.network(servesMetrics: false), [("Host", "w.example:9443")], "https://w.example:9443"),
            (.thisMachine, [("Host", "")], "http://localhost"),
        ] as [(InternalRoutes.Exposure, [ServerRequest.Field], String)]
    )
    func metadata(exposure: InternalRoutes.Exposure, headers: [ServerRequest.Field], issuer: String) async throws {
        let path = "/.well-known/oauth-authorization-server"
        let request = ServerRequest(method: "GET", path: path, headers: headers)
        let routes = try await VendingFixture().routes(exposure: exposure)
        let response = try await VendingFixture.response(to: request, from: routes)
        let exchange = "urn:ietf:params:oauth:grant-type:token-exchange"
        let metadata: [String: JSONValue] = [
            "issuer": .string(issuer), "token_endpoint": .string("\(issuer)/oauth2/token"),
            "grant_types_supported": .array([.string("refresh_token"), .string(exchange)]),
            "token_endpoint_auth_methods_supported": .array([
                .string("client_secret_basic"), .string("client_secret_post"),
            ]),
            "response_types_supported": .array([]),
        ]
        #expect(JSONValue.object(in: response.body)?.object == metadata)
    }

    @Test("show the reason why the worker is not ready only to services")
    func readinessOverNetwork() async throws {
        let fixture = try VendingFixture()
        let network = InternalRoutes.Exposure.network(servesMetrics: true)
        let unauthenticated = try await Self.send("GET", "/readyz", nil, network, in: fixture)
        #expect(unauthenticated.status == 503)
        #expect(unauthenticated.body == Array("not ready\n".utf8))
        let service = try await Self.send("GET", "/readyz", VendingFixture.credential, network, in: fixture)
        #expect(service.status == 503)
        #expect(JSONValue.object(in: service.body)?["checks"] != nil)
        let local = try await Self.send("GET", "/readyz", nil, in: fixture)
        #expect(local.body == service.body)
    }

    @Test(
        "Without services the routes of tokens say so, and the others work",
        arguments: [
            ("GET", "/v1/grants/u-1/token", 503, "no_services"),
            ("POST", "/v1/grants/u-1/token/refresh", 503, "no_services"),
            ("POST", "/oauth2/token", 503, "temporarily_unavailable"), ("GET", "/healthz", 200, nil),
            ("GET", "/.well-known/oauth-authorization-server", 503, "no_services"),
            ("GET", "/status", 200, nil), ("GET", "/metrics", 200, nil), ("GET", "/", 200, nil),
            ("GET", "/users", 503, nil),
        ] as [(String, String, Int, String?)]
    )
    func withoutServices(method: String, path: String, status: Int, code: String?) async throws {
        let fixture = try VendingFixture()
        let response = try await Self.send(method, path, nil, in: fixture, servesTokens: false)
        #expect(response.status == status)
        if let code { #expect(ParsedResponse(response)["error"]?.string == code) }
    }

    private static func send(
        _ method: String,
        _ path: String,
        _ credential: String?,
        _ exposure: InternalRoutes.Exposure = .thisMachine,
        in fixture: VendingFixture,
        servesTokens: Bool = true
    ) async throws -> ServerResponse {
        let request = ServerRequest(
            method: method,
            path: path,
            headers: credential.map { [("Authorization", "Bearer \($0)")] } ?? []
        )
        let routes = await fixture.routes(exposure: exposure, hasServices: servesTokens)
        return try await VendingFixture.response(to: request, from: routes)
    }
}
