import Storage

/// All grants of a store, or those in one state, a page at a time, or those with one e-mail address at once.
struct GrantPages: AsyncSequence, AsyncIteratorProtocol {
    /// The number of grants read at a time, so that memory does not grow with their number.
    static let usualSize = 500

    let store: any Store
    var state: GrantState?
    var email: String?
    var size = usualSize
    /// The last grant that was read.
    var last: GrantID?

    func makeAsyncIterator() -> Self { self }

    mutating func next() async throws -> [Grant]? {
        let page: [Grant]
        if let email {
            page = last == nil ? try await store.grants(ofEmail: email, atMost: .max) : []
        } else {
            page = try await store.grants(after: last, in: state, atMost: size)
        }
        last = page.last?.id
        return last == nil ? nil : page
    }
}
