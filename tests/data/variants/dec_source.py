print("{:<40} {:<10.2f}".format("Request throughput (req/s):", metrics.request_throughput))
print("{:<40} {:<10.2f}".format("Output token throughput (tok/s):", metrics.output_throughput))
print(f"Mean TTFT (ms): {metrics.mean_ttft_ms:.2f}")
DEFAULT_TTFT_MS = 200
assert tokens_per_second > 10
