import Base
import HTTPServer
import Status
import Storage

extension MonitoringHandler {
    /// The headers of the page and of its refusals: no cache keeps them, no other page shows them in a frame or loads
    /// them, and a URL is not sent to other sites.
    ///
    /// The name in the `Host` header is not checked. A page elsewhere whose name resolves to this machine (DNS
    /// rebinding) could read the counts, as it could read `/status` and `/metrics`. It cannot read a user, because a
    /// browser sends a credential only to the name for which it was entered. A check would refuse proxies, and names of
    /// this machine that only its network knows.
    static let pageHeaders: [ServerRequest.Field] = [
        ServerResponse.noStore,
        ("Content-Security-Policy", StatusPage.contentSecurityPolicy),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
}

/// The routes of the status page, for people with a browser.
extension InternalRoutes {
    static let usersPath = "/users"

    var statusPageRoutes: [Route] {
        [
            Route("GET", "/") { request, _ in .respond(await page(for: request)) },
            // Without a credential, because the links of alerts lead here and it is the same for everyone.
            Route("GET", "/runbook") { _, _ in
                let headers = [("Content-Type", "text/html; charset=utf-8")] + MonitoringHandler.pageHeaders
                return .respond(ServerResponse(headers: headers, body: Array(StatusPage.runbook.utf8)))
            },
            Route("GET", "/grants") { request, _ in .respond(await list(for: request)) },
            Route("GET", Self.usersPath) { request, _ in .respond(await user(for: request)) },
            Route("POST", Self.usersPath) { request, _ in .respond(await user(for: request)) },
        ]
    }

    private func page(for request: ServerRequest) async -> ServerResponse {
        guard maySeeDetails(request) else { return ServiceError.noLogin.pageResponse }
        return await monitoring.page()
    }

    private func list(for request: ServerRequest) async -> ServerResponse {
        guard let lookup else { return ServiceError.noOperators.pageResponse }
        do throws(ServiceError) {
            try Self.refuseOtherSites(request)
            return await monitoring.page(showing: try await lookup.list(request, at: monitoring.time.now))
        } catch {
            return error.pageResponse
        }
    }

    /// The form sends a body, because an address would have the user's id or e-mail address, and proxies and browsers
    /// keep addresses. The answer links to an address with the id of a grant instead.
    private func user(for request: ServerRequest) async -> ServerResponse {
        guard let lookup, let administration else { return ServiceError.noOperators.pageResponse }
        do throws(ServiceError) {
            try Self.refuseOtherSites(request)
            guard request.method == "POST", request.form.contains(where: { $0.name == "change" }) else {
                let fields = request.method == "POST" ? request.form : request.query
                let entered = fields.first { $0.name == "user" }?.value
                return await monitoring.page(showing: try await lookup.user(request), lookedUp: entered)
            }
            // Browsers say so if another site makes the request, for which they add the credential too.
            if let site = request.header("sec-fetch-site"), site != "same-origin" { throw ServiceError.foreignForm }
            let grant = try await lookup.change(request, by: administration)
            // So that a reload does not repeat the change.
            let location = ("Location", "users?grant=\(grant)")
            return ServerResponse(status: 303, headers: [location] + MonitoringHandler.pageHeaders)
        } catch {
            return error.pageResponse
        }
    }

    /// Refuses what a page of another site loads without showing it, such as an image or a frame.
    ///
    /// The browser adds the operator's credential, and each look-up makes a line in the audit. Links and forms that the
    /// operator follows are allowed. A page cannot change these headers (https://www.w3.org/TR/fetch-metadata/).
    private static func refuseOtherSites(_ request: ServerRequest) throws(ServiceError) {
        guard request.header("sec-fetch-site") == "cross-site" else { return }
        guard request.header("sec-fetch-mode") == "navigate" else { throw .foreignPage }
        if let destination = request.header("sec-fetch-dest"), destination != "document" { throw .foreignPage }
    }
}
