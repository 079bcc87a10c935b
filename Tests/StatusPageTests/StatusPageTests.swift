import StatusPage
import Testing

@Suite struct StatusPageTests {
    @Test func policyForbidsWhatIsNotNamed() {
        #expect(StatusPage.contentSecurityPolicy.hasPrefix("default-src 'none'"))
    }
}
