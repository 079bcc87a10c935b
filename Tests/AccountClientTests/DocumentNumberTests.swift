import TestSupport
import Testing

@testable import AccountClient

@Suite("The numbers of the library")
struct DocumentNumberTests {
    private static let all = [
        DocumentedNumber(
            "docs/app.md",
            "less than \(words(AccountClient.minimumTimeLeft)) left by the device's clock"
        ),
        DocumentedNumber("docs/app.md", "If a response comes \(words(AccountClient.maximumResponseAge)) late"),
        DocumentedNumber("docs/guarantees.md", "more than \(words(AccountClient.maximumResponseAge)) beside another"),
    ]

    @Test("are those that the pages name", arguments: all)
    func pages(number: DocumentedNumber) throws {
        #expect(try number.isOnPage)
    }

    private static func words(_ seconds: Double) -> String {
        seconds == 30 ? "half a minute" : Duration.seconds(seconds).spelled
    }
}
