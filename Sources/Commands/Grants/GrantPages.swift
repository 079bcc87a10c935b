import Storage

/// All grants of a store, or those in one state, a page at a time.
struct GrantPages: AsyncSequence {
    let store: any GrantStore
    let state: GrantState?
    let size: Int

    struct Iterator: AsyncIteratorProtocol {
        let pages: GrantPages
        private var last: GrantID?

        init(pages: GrantPages) {
            self.pages = pages
        }

        mutating func next() async throws -> [Grant]? {
            let page = try await pages.store.grants(after: last, in: pages.state, atMost: pages.size)
            guard let lastGrant = page.last else { return nil }
            last = lastGrant.id
            return page
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(pages: self) }
}
