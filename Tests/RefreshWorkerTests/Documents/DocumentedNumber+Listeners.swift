import Foundation
import TestSupport

@testable import Base
@testable import GoogleOAuth
@testable import HTTPClient
@testable import HTTPServer
@testable import RefreshWorker
@testable import Routes

/// The limits of requests, connections and the process.
extension DocumentedNumber {
    static var listeners: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/app.md",
            """
            | connections to the public listener | \(HTTPListeners.maximumPublic.grouped), and \
            \(HTTPListeners.maximumConnectionsOfAddress) from one address or IPv6 /64 |
            """,
            """
            | all bodies together | \(server.requestMemoryBytes.inMebibytes), of which those above \
            \(RequestMemory.smallBody / 1024) KiB can use half.
            """,
            "| look-ups at Google for callers | \(HTTPListeners.maximumLookups) at one time",
            """
            the worker needs \(ProcessSetup.filesOfDaemon) file descriptors (\(ProcessSetup.filesOfCommand) for a command), \
            \(ProcessSetup.threads) threads, and \(ProcessSetup.addressSpace >> 30) GiB of address space
            """,
            "for up to \(KeySetCache.minimumFetchInterval.spelled) after the login changes its keys"
        )
        numbers.add(
            "docs/services.md",
            "One address can have \(HTTPListeners.maximumConnectionsOfAddress) open connections",
            """
            must be complete within \(server.deadlines.head.seconds) seconds, a request with its body within \
            \(server.deadlines.request.seconds)
            """
        )
        numbers.add(
            "docs/guarantees.md",
            "A request is read for at most \(server.deadlines.request.spelled)",
            "All request bodies together use at most \(server.requestMemoryBytes.inMebibytes)",
            "headers of more than \(HTTPClient.Configuration().maximumHeaderBytes / 1024) KiB"
        )
        numbers.add(
            "docs/settings.md",
            "\(tenfold.capitalized) times as many successful sign-ins are allowed, and \(tenfold) times as many requests"
        )
        return numbers
    }

    private static let server = HTTPServer.Configuration(listen: .tcp(address: "127.0.0.1", port: 0))
    private static let tenfold = RequestBudgets.successesPerFailure.asWord
}
