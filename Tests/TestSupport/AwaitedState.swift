import Synchronization

/// A value that threads change, and whose changes tasks await.
package final class AwaitedState<Value: Sendable>: Sendable {
    private struct Content {
        var value: Value
        var waiters: [(isMet: @Sendable (Value) -> Bool, caller: CheckedContinuation<Void, Never>)] = []
    }

    private let content: Mutex<Content>

    package init(_ value: Value) {
        content = Mutex(Content(value: value))
    }

    package var value: Value { content.withLock { $0.value } }

    /// Changes the value and resumes the waiting tasks whose condition is now met.
    @discardableResult
    package func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        let (result, met) = content.withLock { content in
            let result = body(&content.value)
            let waiters = content.waiters
            content.waiters = waiters.filter { !$0.isMet(content.value) }
            return (result, waiters.filter { $0.isMet(content.value) }.map(\.caller))
        }
        for caller in met { caller.resume() }
        return result
    }

    /// Returns once the value meets the condition.
    package func wait(until isMet: @escaping @Sendable (Value) -> Bool) async {
        await withCheckedContinuation { caller in
            let isMetAlready = content.withLock { content in
                if isMet(content.value) { return true }
                content.waiters.append((isMet, caller))
                return false
            }
            if isMetAlready { caller.resume() }
        }
    }
}
