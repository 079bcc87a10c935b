import TestSupport
import Testing

/// The numbers of the rules have a test of their own in `SchedulerTests`, those of the app's library in
/// `AccountClientTests`.
@Suite("The numbers of the program")
struct DocumentNumberTests {
    private static let all =
        DocumentedNumber.storage + DocumentedNumber.postgres + DocumentedNumber.status + DocumentedNumber.listeners
        + DocumentedNumber.sessions + DocumentedNumber.services + DocumentedNumber.notices + DocumentedNumber.logs
        + DocumentedNumber.operation + DocumentedNumber.connections + DocumentedNumber.openTelemetry

    @Test("are those that the pages name", arguments: all)
    func pages(number: DocumentedNumber) throws {
        #expect(try number.isOnPage)
    }
}
