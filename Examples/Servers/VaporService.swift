import NIOCore
import NIOHTTP1
import Vapor
import WorkerTokens

/// Routes of a Vapor server that reads its users' mail, and gets the worker's notices.
func addRoutes(to app: Application, tokens: WorkerTokens, notices: NoticeVerifier) {
    app.get("mail", ":user") { request async throws -> String in
        let user = try request.parameters.require("user")
        do {
            return try await tokens.withToken(for: user) { token in try await newestMail(token) }
        } catch TokenError.signInAgain {
            throw Abort(.conflict, reason: "Please connect your Google account again.")
        } catch TokenError.tryAgain(let seconds, _) {
            throw Abort(.serviceUnavailable, headers: ["Retry-After": String(Int(seconds))])
        }
    }

    app.on(.POST, "google-notices", body: .collect(maxSize: "64kb")) { request async throws -> HTTPStatus in
        guard let body = request.body.data else { return .badRequest }
        do {
            let notice = try notices.notice(in: body.readableBytesView) { request.headers.first(name: $0) }
            if let user = notice.userID { await tokens.forget(user: user) }
            return .noContent
        } catch NoticeError.forged {
            return .unauthorized
        } catch {
            return .badRequest
        }
    }
}
