CREATE TABLE IF NOT EXISTS test (
  build_commit TEXT,
  build_number INTEGER,
  cpu_info TEXT,
  gpu_info TEXT,
  backends TEXT,
  model_filename TEXT,
  model_type TEXT,
  model_size INTEGER,
  model_n_params INTEGER,
  n_batch INTEGER,
  n_threads INTEGER,
  type_k TEXT,
  n_gpu_layers INTEGER,
  n_prompt INTEGER,
  n_gen INTEGER,
  test_time TEXT,
  avg_ns INTEGER,
  stddev_ns INTEGER,
  avg_ts REAL,
  stddev_ts REAL
);

INSERT INTO test (build_commit, build_number, cpu_info, gpu_info, backends, model_filename, model_type, model_size, model_n_params, n_batch, n_threads, type_k, n_gpu_layers, n_prompt, n_gen, test_time, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('3469684', '1275', 'Intel(R) Xeon(R) (a, b)', 'NVIDIA''s L4', 'CUDA', 'm/x.gguf', 'llama 7B Q4_0', '3825065984', '6738415616', '512', '16', 'f16', '99', '512', '0', '2023-09-25T08:09:01Z', '213704112', '801220', '2395.861034', '8.980117');
INSERT INTO test (build_commit, build_number, cpu_info, gpu_info, backends, model_filename, model_type, model_size, model_n_params, n_batch, n_threads, type_k, n_gpu_layers, n_prompt, n_gen, test_time, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('3469684', '1275', 'Intel(R) Xeon(R) (a, b)', 'NVIDIA''s L4', 'CUDA', 'm/x.gguf', 'llama 7B Q4_0', '3825065984', '6738415616', '512', '16', 'f16', '99', '0', '128', '2023-09-25T08:09:01Z', '973115870', '801220', '131.537013', '0.35');
